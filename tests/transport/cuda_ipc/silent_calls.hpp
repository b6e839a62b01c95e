// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which calls of the driver may fail without a word: tests that let each call fail ask here. All others must be told.
#pragma once

#include "transport/cuda_ipc/host_driver.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace hocket_test {

/// Whether the code is no failure of this call.
inline bool is_no_failure(std::string_view call, status code) {
  if (code == status::not_ready) return call == "event_query" || call == "stream_query";  // is asked again
  return code == status::peer_access_already_enabled && call == "ctx_enable_peer_access";
}

/// Gives back what nobody uses any more. The driver has done so, or can't any more; and no result hangs on it.
inline bool cleans_up(std::string_view call) {
  constexpr std::string_view all[] = {"mem_free", "mem_free_host", "stream_destroy", "event_destroy",
                                      "ipc_close_mem_handle"};
  return std::find(std::begin(all), std::end(all), call) != std::end(all);
}

/// Begins to talk in a context: see context_scope.
inline bool enters_context(std::string_view call) {
  return call == "ctx_get_current" || call == "ctx_set_current" || call == "thread_exchange_stream_capture_mode";
}

/// Leaves the thread as it was. What follows is asked in its own context; and what captures forbid fails by itself.
inline bool puts_back(std::string_view call) {
  return call == "ctx_set_current, back" || call == "thread_exchange_stream_capture_mode, back";
}

/// Whether nobody has to hear that a call of `of` failed with this code.
inline bool may_fail_silently(const host_driver& of, status code) {
  const std::string_view call = of.failed_call();
  if (is_no_failure(call, code) || cleans_up(call) || puts_back(call)) return true;
  const std::string_view after = of.call_after();
  // Where there is no room for a mapping, one that nobody uses is closed; then it is asked once more.
  const bool full = code == status::out_of_memory || code == status::map_failed || code == status::too_many_peers;
  if (call == "ipc_open_mem_handle" && full && enters_context(after)) return true;
  return enters_context(call) && cleans_up(after);  // which is tried nevertheless
}

/// What the code of the failed call is told by. Memory that the driver does not know is the host's, in words.
inline std::string words_for_failed(const host_driver& of, status code) {
  const bool unknown =
      code == status::invalid_value && std::string_view(of.failed_call()) == "pointer_get_attribute, of its kind";
  return unknown ? "the driver does not know this memory" : "error " + std::to_string(static_cast<int>(code));
}

/// Where a rank is in the life of a group: `own` is what a program does of its own.
enum class stage { none, joining, binding, enqueueing, finishing, closing, own };

/// The same for a call of a group, or of what is bound there, at this stage.
inline bool may_fail_silently(const host_driver& of, status code, stage when) {
  const std::string_view call = of.failed_call(), after = of.call_after();
  switch (when) {
    case stage::binding:
      // What is kept of a handle is then found out anew.
      if (call == "pointer_get_attribute, of its generation" && after == "pointer_get_attribute, of its kind")
        return true;
      // Whether operations that are gone are over: if nobody knows, they are kept.
      if (call == "event_query" || (enters_context(call) && after == "event_query")) return true;
      break;
    case stage::closing:
      // Told when all ranks have unmapped.
      if (call == "ipc_close_mem_handle") return false;
      break;
    case stage::own: return true;
    default: break;
  }
  return may_fail_silently(of, code);
}

}  // namespace hocket_test
