// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: data that are not partial can only become partial<sum>
//
// A sum divided by the number of ranks is not the mean over the elements.
#include <shard/setting_with_domains.hpp>

auto average(const vector_on_tp<partial<sum>>& gradient) { return convert<"tp", partial<mean>>(gradient); }
