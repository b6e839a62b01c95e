// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the norm is that of elements which are numbers
//
// The square of a complex number is none of its size.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

#include <complex>

double norm_of(const tensor<std::complex<double>, extents<dynamic>, ranks, elsewhere<invariant>>& x) { return norm(x); }
