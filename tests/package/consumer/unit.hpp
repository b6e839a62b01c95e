// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the consumer's second translation unit offers.
#pragma once

#include <string>

std::string message_from_unit();
