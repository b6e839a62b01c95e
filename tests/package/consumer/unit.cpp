// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "unit.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>

std::string message_from_unit() {
  const bool never = hocket::deadline().never();
  return hocket::make_failure(hocket::errc::timeout, never ? "" : "too early").message();
}
