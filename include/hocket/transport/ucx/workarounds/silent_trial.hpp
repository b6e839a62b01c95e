// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Suppresses UCX's error messages while start-up tries a network, which may fail and be replaced by another.
///
/// Version: seen with UCX 1.13.
/// Symptom: UCX prints "connection establishment for socket fd N was unsuccessful" for an interface that start-up only
///   tries, and the program then works.
/// Test: two_hosts, "hosts connect over any network", in which the output of ranks that connect must be empty.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdarg>
#include <cstdlib>

#pragma push_macro("signals")  // of Qt; a member of UCX has this name
#undef signals
#include <ucs/debug/log_def.h>
#pragma pop_macro("signals")

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// While an object exists, UCX prints no errors and warnings in this process, unless the user has set UCX_LOG_LEVEL.
class silent_trial {
 public:
  silent_trial() : active_(std::getenv("UCX_LOG_LEVEL") == nullptr) {
    if (active_) ucs_log_push_handler(&silent_trial::handle);
  }
  silent_trial(const silent_trial&) = delete;
  silent_trial& operator=(const silent_trial&) = delete;
  ~silent_trial() {
    if (active_) ucs_log_pop_handler();
  }

 private:
  static ucs_log_func_rc_t handle(const char*, unsigned, const char*, ucs_log_level_t level,
                                  const ucs_log_component_config_t*, const char*, va_list) {
    const bool dropped = level == UCS_LOG_LEVEL_ERROR || level == UCS_LOG_LEVEL_WARN;
    return dropped ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
  }

  const bool active_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
