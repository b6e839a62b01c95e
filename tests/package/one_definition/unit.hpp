// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Results that must not depend on NDEBUG, and the functions of the second translation unit.
#pragma once

#include <hocket/hocket.hpp>
#include <hocket/sim.hpp>

#include <functional>
#include <string>
#include <vector>

/// Returns a sum, the message of an error, and the price of a plan. Each unit has its own copy.
[[maybe_unused]] static std::string facts() {
  std::string text;
  hocket::local::run(2, [&](auto comm) {
    std::vector<float> values{1.5F, 2};
    hocket::all_reduce(comm, hocket::in_place(values), std::plus<>{});
    std::string found = std::to_string(values.front()) + ' ' + std::to_string(values.back());
    try {
      hocket::broadcast(comm, values, hocket::root{7});
    } catch (const hocket::error& refused) {
      found += ' ' + refused.code().message();
    }
    if (comm.rank() == 0) text = found;
  });
  const hocket::plan::ring_all_reduce ring;
  return text + ' ' +
         std::to_string(hocket::plan::price(ring, 5, {100, 1, 5}, 4, hocket::plan::example_machine).seconds * 1e9);
}

std::string facts_of_unit();
[[noreturn]] void raise_in_unit();

#if defined(SAME_LEVEL)
/// Returns the sum over the ranks of `comm`.
int sum_in_unit(const hocket::local::communicator& comm, int value);
#endif
