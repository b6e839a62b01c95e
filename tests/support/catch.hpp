// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Catch2 as it is installed: version 3, or the single header of version 2 that Debian 12 carries.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
