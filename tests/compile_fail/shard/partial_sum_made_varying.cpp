// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: slices and partial sums can't become varying
//
// One rank's summand is not a result.
#include <shard/setting_with_domains.hpp>

auto own(const vector_on_tp<partial<sum>>& loss) { return convert<"tp", varying>(loss); }
