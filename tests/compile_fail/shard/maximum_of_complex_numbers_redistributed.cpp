// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the reduction of this partial placement can't combine such elements
//
// Complex numbers have no order.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

#include <complex>

using complex_maxima =
    tensor<std::complex<float>, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", partial<maximum>>>;
auto whole(const complex_maxima& x) { return redistribute<on<"tp", replicated>>(x); }
