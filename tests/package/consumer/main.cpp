// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>

#include "unit.hpp"

int main() {
  try {
    hocket::raise(hocket::errc::timeout, "");
  } catch (const hocket::error& error) {
    const bool agree = error.code() == hocket::errc::timeout && error.what() == message_from_unit();
    return agree && hocket::deadline().never() ? 0 : 1;
  }
}
