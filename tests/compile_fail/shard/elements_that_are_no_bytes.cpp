// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: elements of a tensor must be trivially copyable
//
// Strings can't be sent as bytes.
#include "setting.hpp"

auto size(const tensor<std::string, extents<dynamic>, ranks, elsewhere<replicated>>& x) { return x.elements().size(); }
