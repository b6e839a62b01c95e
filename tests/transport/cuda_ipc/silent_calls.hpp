// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which failures of driver calls the library may ignore, for tests that let each call fail. It must report all others.
#pragma once

#include "transport/cuda_ipc/host_driver.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace hocket_test {

/// Returns whether the code is not a failure of this call.
inline bool is_no_failure(std::string_view call, status code) {
  if (code == status::not_ready) return call == "event_query" || call == "stream_query";  // the library calls it again
  return code == status::peer_access_already_enabled && call == "ctx_enable_peer_access";
}

/// Returns whether the call releases an unused resource. The driver has done so, or can't; no result depends on it.
inline bool cleans_up(std::string_view call) {
  constexpr std::string_view all[] = {"mem_free", "mem_free_host", "stream_destroy", "event_destroy",
                                      "ipc_close_mem_handle"};
  return std::find(std::begin(all), std::end(all), call) != std::end(all);
}

/// Returns whether the call enters a context: see context_scope.
inline bool enters_context(std::string_view call) {
  return call == "ctx_get_current" || call == "ctx_set_current" || call == "thread_exchange_stream_capture_mode";
}

/// Returns whether the call restores the thread's state. Later calls enter their own context, or fail in captures.
inline bool puts_back(std::string_view call) {
  return call == "ctx_set_current, back" || call == "thread_exchange_stream_capture_mode, back";
}

/// Returns whether the library may ignore that a call of `of` failed with this code.
inline bool may_fail_silently(const host_driver& of, status code) {
  const std::string_view call = of.failed_call();
  if (is_no_failure(call, code) || cleans_up(call) || puts_back(call)) return true;
  const std::string_view after = of.call_after();
  // If there is no room for a mapping, the library closes an unused one, and calls again.
  const bool full = code == status::out_of_memory || code == status::map_failed || code == status::too_many_peers;
  if (call == "ipc_open_mem_handle" && full && enters_context(after)) return true;
  return enters_context(call) && cleans_up(after);  // the library calls it all the same
}

/// Returns the text that must report the failed call. The library reports memory unknown to the driver as host memory.
inline std::string words_for_failed(const host_driver& of, status code) {
  const bool unknown =
      code == status::invalid_value && std::string_view(of.failed_call()) == "pointer_get_attribute, of its kind";
  return unknown ? "the driver does not know this memory" : "error " + std::to_string(static_cast<int>(code));
}

/// The stage of a group that a rank has reached. `own`: calls of the program.
enum class stage { none, joining, binding, enqueueing, finishing, closing, own };

/// The same for a call of a group, or of a bound call, at this stage.
inline bool may_fail_silently(const host_driver& of, status code, stage when) {
  const std::string_view call = of.failed_call(), after = of.call_after();
  switch (when) {
    case stage::binding:
      // The library then queries the stored data of a handle again.
      if (call == "pointer_get_attribute, of its generation" && after == "pointer_get_attribute, of its kind")
        return true;
      // If it is unknown whether released operations have completed, the library keeps them.
      if (call == "event_query" || (enters_context(call) && after == "event_query")) return true;
      break;
    case stage::closing:
      // Reported after all ranks have unmapped.
      if (call == "ipc_close_mem_handle") return false;
      break;
    case stage::own: return true;
    default: break;
  }
  return may_fail_silently(of, code);
}

}  // namespace hocket_test
