// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Attributes of functions with loops over elements: g++ vectorises loops only at -O3, and programs use -O2.
#pragma once

#include <hocket/core/config.hpp>

/// Makes g++ optimise one function like -O3, whatever the flags of the including program; the second macro also unrolls
/// its loops. clang does both at -O2.
#if defined(__GNUC__) && !defined(__clang__)
#define HOCKET_VECTORIZE __attribute__((optimize("O3")))
#define HOCKET_VECTORIZE_AND_UNROLL __attribute__((optimize("O3", "unroll-loops")))
#else
#define HOCKET_VECTORIZE
#define HOCKET_VECTORIZE_AND_UNROLL
#endif
