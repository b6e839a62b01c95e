// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All element types of one or two bytes, and the traits of element types that generic code uses.
#pragma once

#include <hocket/scalar/bfloat16.hpp>
#include <hocket/scalar/float8.hpp>
#include <hocket/scalar/half.hpp>
#include <hocket/scalar/traits.hpp>
