// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the name of an axis must have 1 to 15 characters
//
// Names of axes are short, because types contain them.
#include <hocket/mesh/axis.hpp>

constexpr hocket::axis_name name = "tensor_parallel_ranks";
