// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the norm needs elements that can be converted to double
//
// The square of a complex number is not the square of its magnitude.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

#include <complex>

double norm_of(const tensor<std::complex<double>, extents<dynamic>, ranks, elsewhere<invariant>>& x) { return norm(x); }
