// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: hocket::copy copies only tensors
//
// Only tensors need copy(), because they have no copy constructor.
#include "setting.hpp"

#include <vector>

auto copied(const std::vector<float>& x) { return hocket::copy(x); }
