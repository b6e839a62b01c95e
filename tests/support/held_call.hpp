// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Several communicators of the same ranks, and a call that stays in one of them, for tests of waits.
#pragma once

#include <hocket/core/strong_types.hpp>
#include <hocket/group/split.hpp>

#include <atomic>
#include <thread>
#include <vector>

namespace hocket_test {

/// Communicators with the members of `comm`.
template <class Communicator>
std::vector<Communicator> copies_of(const Communicator& comm, int count) {
  std::vector<Communicator> all;
  for (int i = 0; i < count; ++i) all.push_back(hocket::split(comm, hocket::color{0}, hocket::key{comm.rank()}));
  return all;
}

/// An addition that stays in the call of one rank until it may continue.
struct held_call {
  std::atomic<bool> entered{false};
  std::atomic<bool> may_end{false};
};
struct held_plus {
  held_call* held;  ///< null: is not held

  int operator()(int a, int b) const {
    if (held != nullptr) {
      held->entered = true;
      while (!held->may_end) std::this_thread::yield();
    }
    return a + b;
  }
};

}  // namespace hocket_test
