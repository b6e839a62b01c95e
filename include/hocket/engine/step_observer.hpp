// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reports the engine's actions as they complete: the trace of a run must equal the steps that its plan lists.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE

/// One completed action.
struct completed_step {
  std::uint64_t sequence = 0;  ///< of the operation, from 1
  unsigned lane = 0;
  unsigned position = 0;  ///< in the lane
  plan::action what;      ///< the action
  std::size_t bytes = 0;  ///< moved or combined, per source
};

/// Called on the thread that drives the operation, after each action. Must not use the communicator.
struct step_observer {
  void (*on_step)(void* context, const completed_step& event) = nullptr;  ///< called with `context`
  void* context = nullptr;                                                ///< passed to `on_step`
};

HOCKET_END_NAMESPACE
