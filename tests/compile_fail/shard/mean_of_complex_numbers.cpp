// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: means need a floating-point element type
//
// The weights of means are numbers of the element type.
#include <shard/setting_with_domains.hpp>

#include <complex>

using complex_means =
    tensor<std::complex<double>, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", partial<mean>>>;
auto whole(const complex_means& x) { return convert<"tp", replicated>(x); }
