// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The function of the consumer's second translation unit.
#pragma once

/// Returns the sum of 1 … `ranks`, computed by an all_reduce over `ranks` threads.
int sum_of_ranks(int ranks);
