// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// CUDA's driver, loaded at run time. One program serves machines with and without a GPU: nothing is linked, and a
/// driver that is missing, too old or without a device is an error message and does not end the program.
///
/// Symbols are looked up by the names that the library exports, including `_v2`: such a name never changes its
/// signature, while the meaning of a name in CUDA's headers has changed between CUDA 11, 12 and 13.
///
/// Code that uses the driver is a template over it. `Driver` there is any type with the members of `driver_functions`.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <dlfcn.h>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The driver's functions, called as in CUDA's documentation.
struct driver_functions {
  status (*init)(unsigned flags) = nullptr;
  status (*driver_get_version)(int*) = nullptr;
  status (*get_error_name)(status, const char**) = nullptr;
  status (*get_error_string)(status, const char**) = nullptr;

  status (*device_get_count)(int*) = nullptr;
  status (*device_get)(device_number*, int ordinal) = nullptr;
  status (*device_get_uuid)(uuid*, device_number) = nullptr;
  status (*device_get_attribute)(int*, device_attribute, device_number) = nullptr;
  status (*device_primary_ctx_retain)(context_handle*, device_number) = nullptr;
  status (*ctx_get_current)(context_handle*) = nullptr;
  status (*ctx_set_current)(context_handle) = nullptr;
  status (*ctx_get_device)(device_number*) = nullptr;
  status (*ctx_enable_peer_access)(context_handle of_peer, unsigned flags) = nullptr;
  status (*module_get_loading_mode)(loading_mode*) = nullptr;

  status (*mem_alloc)(address*, std::size_t) = nullptr;
  status (*mem_alloc_managed)(address*, std::size_t, unsigned flags) = nullptr;
  status (*mem_free)(address) = nullptr;
  status (*mem_host_alloc)(void**, std::size_t, unsigned flags) = nullptr;
  status (*mem_free_host)(void*) = nullptr;
  status (*mem_get_address_range)(address* base, std::size_t*, address) = nullptr;
  status (*pointer_get_attribute)(void*, pointer_attribute, address) = nullptr;
  status (*pointer_get_attributes)(unsigned count, pointer_attribute*, void**, address) = nullptr;
  status (*memcpy_async)(address to, address from, std::size_t, stream_handle) = nullptr;

  status (*ipc_get_mem_handle)(ipc_memory_handle*, address) = nullptr;
  status (*ipc_open_mem_handle)(address*, ipc_memory_handle, unsigned flags) = nullptr;
  status (*ipc_close_mem_handle)(address) = nullptr;

  status (*stream_create)(stream_handle*, unsigned flags) = nullptr;
  status (*stream_destroy)(stream_handle) = nullptr;
  status (*stream_query)(stream_handle) = nullptr;
  status (*stream_synchronize)(stream_handle) = nullptr;
  status (*stream_get_ctx)(stream_handle, context_handle*) = nullptr;
  status (*stream_get_flags)(stream_handle, unsigned*) = nullptr;
  status (*stream_is_capturing)(stream_handle, capture_status*) = nullptr;
  status (*thread_exchange_stream_capture_mode)(capture_mode*) = nullptr;
  status (*stream_wait_event)(stream_handle, event_handle, unsigned flags) = nullptr;
  status (*stream_write_value_32)(stream_handle, address, std::uint32_t, unsigned flags) = nullptr;
  status (*stream_wait_value_32)(stream_handle, address, std::uint32_t, unsigned flags) = nullptr;
  status (*stream_batch_mem_op)(stream_handle, unsigned count, word_operation*, unsigned flags) = nullptr;

  status (*event_create)(event_handle*, unsigned flags) = nullptr;
  status (*event_destroy)(event_handle) = nullptr;
  status (*event_record)(event_handle, stream_handle) = nullptr;
  status (*event_query)(event_handle) = nullptr;
};

/// Calls `each(name, function)` for all functions; `name` is the name that the library exports.
template <class Functions, class Each>
void for_each_function(Functions& all, Each&& each) {
  each("cuInit", all.init);
  each("cuDriverGetVersion", all.driver_get_version);
  each("cuGetErrorName", all.get_error_name);
  each("cuGetErrorString", all.get_error_string);
  each("cuDeviceGetCount", all.device_get_count);
  each("cuDeviceGet", all.device_get);
  each("cuDeviceGetUuid_v2", all.device_get_uuid);
  each("cuDeviceGetAttribute", all.device_get_attribute);
  each("cuDevicePrimaryCtxRetain", all.device_primary_ctx_retain);
  each("cuCtxGetCurrent", all.ctx_get_current);
  each("cuCtxSetCurrent", all.ctx_set_current);
  each("cuCtxGetDevice", all.ctx_get_device);
  each("cuCtxEnablePeerAccess", all.ctx_enable_peer_access);
  each("cuModuleGetLoadingMode", all.module_get_loading_mode);
  each("cuMemAlloc_v2", all.mem_alloc);
  each("cuMemAllocManaged", all.mem_alloc_managed);
  each("cuMemFree_v2", all.mem_free);
  each("cuMemHostAlloc", all.mem_host_alloc);
  each("cuMemFreeHost", all.mem_free_host);
  each("cuMemGetAddressRange_v2", all.mem_get_address_range);
  each("cuPointerGetAttribute", all.pointer_get_attribute);
  each("cuPointerGetAttributes", all.pointer_get_attributes);
  each("cuMemcpyAsync", all.memcpy_async);
  each("cuIpcGetMemHandle", all.ipc_get_mem_handle);
  each("cuIpcOpenMemHandle_v2", all.ipc_open_mem_handle);
  each("cuIpcCloseMemHandle", all.ipc_close_mem_handle);
  each("cuStreamCreate", all.stream_create);
  each("cuStreamDestroy_v2", all.stream_destroy);
  each("cuStreamQuery", all.stream_query);
  each("cuStreamSynchronize", all.stream_synchronize);
  each("cuStreamGetCtx", all.stream_get_ctx);
  each("cuStreamGetFlags", all.stream_get_flags);
  each("cuStreamIsCapturing", all.stream_is_capturing);
  each("cuThreadExchangeStreamCaptureMode", all.thread_exchange_stream_capture_mode);
  each("cuStreamWaitEvent", all.stream_wait_event);
  each("cuStreamWriteValue32_v2", all.stream_write_value_32);
  each("cuStreamWaitValue32_v2", all.stream_wait_value_32);
  each("cuStreamBatchMemOp_v2", all.stream_batch_mem_op);
  each("cuEventCreate", all.event_create);
  each("cuEventDestroy_v2", all.event_destroy);
  each("cuEventRecord", all.event_record);
  each("cuEventQuery", all.event_query);
}

/// The oldest supported driver version, in the driver's encoding: 12.0.
inline constexpr int least_driver_version = 12000;

namespace detail {

/// "12.4" for 12040.
inline std::string version_text(int version) {
  return hocket::detail::concat({version / 1000, '.', version % 1000 / 10});
}

inline failure no_driver(std::string why) {
  return make_failure(errc::bad_environment, "no CUDA here: " + std::move(why));
}

inline std::string visible_devices_text() {
  const char* const value = std::getenv("CUDA_VISIBLE_DEVICES");
  return value == nullptr ? "CUDA_VISIBLE_DEVICES is not set"
                          : hocket::detail::concat({"CUDA_VISIBLE_DEVICES='", value, "'"});
}

/// Returns a text for `code`, even if the driver is too broken to provide one.
template <class Driver>
std::string words_of(Driver& from, status code) {
  const char* name = nullptr;
  const char* meaning = nullptr;
  std::string text = hocket::detail::concat({"error ", static_cast<int>(code)});
  if (from.get_error_name(code, &name) == status::success && name != nullptr)
    text = hocket::detail::concat({name, " (", text, ')'});
  if (from.get_error_string(code, &meaning) == status::success && meaning != nullptr)
    text += std::string(": ") + meaning;
  return text;
}

/// Starts the driver. Returns a failure if it is too old, does not start, or has no device.
template <class Driver>
failure started(Driver& what) {
  int version = 0;
  if (const status asked = what.driver_get_version(&version); asked != status::success) {
    if (asked == status::stub_library)
      return no_driver(
          "the loaded libcuda.so.1 is the toolkit's stub for linking: remove its folder from LD_LIBRARY_PATH");
    return no_driver("the driver does not report its version: " + words_of(what, asked));
  }
  if (version < least_driver_version) {
    return no_driver(hocket::detail::concat({"the driver is for CUDA ", version_text(version), ", and ",
                                             version_text(least_driver_version),
                                             " is the oldest supported version: install a newer one"}));
  }
  int devices = 0;
  const status begun = what.init(0U);
  if (begun != status::success && begun != status::no_device) {
    return no_driver(
        hocket::detail::concat({"the driver does not start: ", words_of(what, begun), "; ", visible_devices_text()}));
  }
  const status counted = begun == status::success ? what.device_get_count(&devices) : status::success;
  if (counted != status::success) return no_driver("the driver can't list devices: " + words_of(what, counted));
  if (devices > 0) return {};
  return no_driver(hocket::detail::concat({"the driver sees no device: ", visible_devices_text(),
                                           ", and a container sees a GPU only if it was started with it"}));
}

/// Fills in `all` from `lookup(name)`, which returns null for an unknown name.
template <class Lookup>
failure found(driver_functions& all, const Lookup& lookup) {
  std::string missing;
  for_each_function(all, [&]<class Function>(const char* name, Function& function) {
    function = reinterpret_cast<Function>(lookup(name));
    if (function == nullptr) missing += (missing.empty() ? "" : ", ") + std::string(name);
  });
  if (missing.empty()) return {};
  return no_driver(hocket::detail::concat({"the driver lacks ", missing, ": it is older than CUDA ",
                                           version_text(least_driver_version), ", or is not CUDA's driver"}));
}

}  // namespace detail

/// The driver of this machine. Copyable; stays loaded until the program ends, because its threads do.
class driver : public driver_functions {
 public:
  /// Loads and starts the driver. If that fails, returns nothing and sets `why` to the reason (`bad_environment`).
  /// Local; takes milliseconds, or up to seconds if this is the first process on the machine that uses the GPU.
  static std::optional<driver> load(failure& why, const char* library = "libcuda.so.1") {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const reason = ::dlerror();
      why = detail::no_driver(std::string(reason != nullptr ? reason : library) +
                              "; NVIDIA's driver provides this library, and a container gets it with the GPU");
      return std::nullopt;
    }
    return load_from([&](const char* name) { return ::dlsym(handle, name); }, why);
  }

  /// Like `load`, with functions that `lookup(name)` finds.
  template <class Lookup>
  static std::optional<driver> load_from(const Lookup& lookup, failure& why) {
    std::optional<driver> result(std::in_place);
    why = detail::found(*result, lookup);
    if (!why) why = detail::started(*result);
    if (why) result.reset();
    return result;
  }
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
