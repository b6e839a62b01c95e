// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the consumer's second translation unit offers.
#pragma once

/// The sum of 1 … `ranks`, by an all_reduce over as many threads.
int sum_of_ranks(int ranks);
