// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading the CUDA driver: errors name what is missing, and the program continues.
#include "support/catch.hpp"
#include "support/text.hpp"

#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>

namespace ipc = hocket::cuda_ipc;
using hocket_test::contains;
using ipc::status;

namespace {

// The results of a driver made of plain functions.
int version = 13000;
int devices = 1;
status beginning = status::success;
status counting = status::success;

status get_version(int* result) {
  *result = version;
  return status::success;
}
status begin(unsigned) { return beginning; }
status count(int* result) {
  *result = devices;
  return counting;
}
status no_text(status, const char**) { return status::invalid_value; }
status not_called() { return status::unknown; }

template <class Function>
void* as_symbol(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* lookup(std::string_view name) {
  if (name == "cuDriverGetVersion") return as_symbol(&get_version);
  if (name == "cuInit") return as_symbol(&begin);
  if (name == "cuDeviceGetCount") return as_symbol(&count);
  if (name == "cuGetErrorName" || name == "cuGetErrorString") return as_symbol(&no_text);
  return as_symbol(&not_called);
}

struct answers {
  int says_version = 13000;
  int has_devices = 1;
  status begins = status::success;
  status counts = status::success;
};

hocket::failure loading(const answers& of) {
  version = of.says_version;
  devices = of.has_devices;
  beginning = of.begins;
  counting = of.counts;
  hocket::failure why;
  const auto found = ipc::driver::load_from([](const char* name) { return lookup(name); }, why);
  CHECK(found.has_value() == !why);
  return why;
}

}  // namespace

TEST_CASE("loading fails with an explanation if there is no driver") {
  hocket::failure why;
  const auto found = ipc::driver::load(why, "libcuda_that_is_nowhere.so.1");
  REQUIRE_FALSE(found);
  CHECK(why.code == hocket::errc::bad_environment);
  CHECK(contains(why.message(), "libcuda_that_is_nowhere.so.1"));
  CHECK(contains(why.message(), "NVIDIA's driver provides this library"));
}

TEST_CASE("loading finds this machine's driver or returns the reason") {
  hocket::failure why;
  const auto found = ipc::driver::load(why);
  CHECK(found.has_value() == !why);
  if (found) {
    int here = 0;
    CHECK(found->device_get_count(&here) == status::success);
    CHECK(here > 0);
  } else {
    WARN("no driver here: " + why.message());
    CHECK(why.code == hocket::errc::bad_environment);
    CHECK(contains(why.message(), "no CUDA here"));
  }
}

TEST_CASE("loading fails if the library is not a driver, and the error names a missing symbol") {
  hocket::failure why;
  CHECK_FALSE(ipc::driver::load(why, "libm.so.6"));
  CHECK(why.code == hocket::errc::bad_environment);
  CHECK(contains(why.message(), "cuIpcOpenMemHandle_v2"));
}

TEST_CASE("loading fails if one symbol is missing, and the error names it") {
  std::size_t functions = 0;
  ipc::driver_functions names;
  ipc::for_each_function(names, [&](const char* missing, auto&) {
    ++functions;
    hocket::failure why;
    const auto all_but_one = [&](const char* name) {
      return std::string_view(name) == missing ? nullptr : lookup(name);
    };
    CHECK_FALSE(ipc::driver::load_from(all_but_one, why));
    CHECK(why.code == hocket::errc::bad_environment);
    CHECK(contains(why.reason, std::string("lacks ") + missing + ":"));
  });
  // Every member of the table is looked up: it contains only pointers.
  CHECK(functions * sizeof(void (*)()) == sizeof(ipc::driver_functions));
}

TEST_CASE("errors distinguish a driver that is too old, does not start, or has no device") {
  CHECK_FALSE(loading({}));
  CHECK_FALSE(loading({.says_version = 12000}));
  CHECK(contains(loading({.says_version = 11080}).message(), "for CUDA 11.8, and 12.0 is the oldest"));
  CHECK(contains(loading({.has_devices = 0}).message(), "sees no device: CUDA_VISIBLE_DEVICES"));
  CHECK(contains(loading({.begins = status::no_device}).message(), "sees no device"));
  CHECK(contains(loading({.begins = status::system_driver_mismatch}).message(), "does not start: error 803"));
  CHECK(contains(loading({.counts = status::unknown}).message(), "can't list devices: error 999"));
  CHECK(loading({.has_devices = 0}).code == hocket::errc::bad_environment);
}

TEST_CASE("each code becomes an error condition of hocket") {
  ipc::driver_functions silent;
  silent.get_error_name = &no_text;
  silent.get_error_string = &no_text;
  for (int code = 1; code < 1000; ++code) {
    const auto found = ipc::status_failure(silent, "opening", static_cast<status>(code));
    CHECK(found);
    CHECK(found.code.category() == hocket::error_category());
    CHECK(contains(found.reason, "opening failed: error " + std::to_string(code)));
  }
  CHECK(ipc::code_of(status::out_of_memory) == hocket::errc::out_of_memory);
  CHECK(ipc::code_of(status::map_failed) == hocket::errc::unreachable);
  CHECK(ipc::code_of(status::no_device) == hocket::errc::bad_environment);
}

#ifdef CUDA_VERSION
namespace {

template <class Ours, class Theirs>
inline constexpr bool passed_alike =
    sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    (std::is_class_v<Ours> || std::is_union_v<Ours>) ==
        (std::is_class_v<Theirs> || std::is_union_v<Theirs>)&&std::is_floating_point_v<Ours> ==
        std::is_floating_point_v<Theirs>;

/// The types that pointers refer to may be opaque, or void.
template <class Ours, class Theirs>
inline constexpr bool pointed_alike = passed_alike<Ours, Theirs>;
template <class Ours, class Theirs>
  requires requires { sizeof(Ours), sizeof(Theirs); } && (!std::is_void_v<Ours>) && (!std::is_void_v<Theirs>)
inline constexpr bool pointed_alike<Ours*, Theirs*> = passed_alike<Ours, Theirs>;

template <class Ours, class Theirs>
struct same_call : std::false_type {};
template <class... Ours, class... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct same_call<status (*)(Ours...), CUresult(Theirs...)> : std::bool_constant<(pointed_alike<Ours, Theirs> && ...)> {
};

template <auto Member, class Theirs>
inline constexpr bool agrees = same_call<std::remove_cvref_t<decltype(ipc::driver_functions{}.*Member)>, Theirs>::value;

using functions = ipc::driver_functions;
static_assert(agrees<&functions::init, decltype(cuInit)>);
static_assert(agrees<&functions::driver_get_version, decltype(cuDriverGetVersion)>);
static_assert(agrees<&functions::get_error_name, decltype(cuGetErrorName)>);
static_assert(agrees<&functions::get_error_string, decltype(cuGetErrorString)>);
static_assert(agrees<&functions::device_get_count, decltype(cuDeviceGetCount)>);
static_assert(agrees<&functions::device_get, decltype(cuDeviceGet)>);
static_assert(agrees<&functions::device_get_uuid, decltype(cuDeviceGetUuid)>);
static_assert(agrees<&functions::device_get_attribute, decltype(cuDeviceGetAttribute)>);
static_assert(agrees<&functions::device_primary_ctx_retain, decltype(cuDevicePrimaryCtxRetain)>);
static_assert(agrees<&functions::ctx_get_current, decltype(cuCtxGetCurrent)>);
static_assert(agrees<&functions::ctx_set_current, decltype(cuCtxSetCurrent)>);
static_assert(agrees<&functions::ctx_get_device, decltype(cuCtxGetDevice)>);
static_assert(agrees<&functions::ctx_enable_peer_access, decltype(cuCtxEnablePeerAccess)>);
static_assert(agrees<&functions::mem_alloc, decltype(cuMemAlloc)>);
static_assert(agrees<&functions::mem_alloc_managed, decltype(cuMemAllocManaged)>);
static_assert(agrees<&functions::mem_free, decltype(cuMemFree)>);
static_assert(agrees<&functions::mem_host_alloc, decltype(cuMemHostAlloc)>);
static_assert(agrees<&functions::mem_free_host, decltype(cuMemFreeHost)>);
static_assert(agrees<&functions::mem_get_address_range, decltype(cuMemGetAddressRange)>);
static_assert(agrees<&functions::pointer_get_attribute, decltype(cuPointerGetAttribute)>);
static_assert(agrees<&functions::pointer_get_attributes, decltype(cuPointerGetAttributes)>);
static_assert(agrees<&functions::memcpy_async, decltype(cuMemcpyAsync)>);
static_assert(agrees<&functions::ipc_get_mem_handle, decltype(cuIpcGetMemHandle)>);
static_assert(agrees<&functions::ipc_open_mem_handle, decltype(cuIpcOpenMemHandle)>);
static_assert(agrees<&functions::ipc_close_mem_handle, decltype(cuIpcCloseMemHandle)>);
static_assert(agrees<&functions::stream_create, decltype(cuStreamCreate)>);
static_assert(agrees<&functions::stream_destroy, decltype(cuStreamDestroy)>);
static_assert(agrees<&functions::stream_query, decltype(cuStreamQuery)>);
static_assert(agrees<&functions::stream_synchronize, decltype(cuStreamSynchronize)>);
static_assert(agrees<&functions::stream_get_ctx, decltype(cuStreamGetCtx)>);
static_assert(agrees<&functions::stream_wait_event, decltype(cuStreamWaitEvent)>);
static_assert(agrees<&functions::stream_get_flags, decltype(cuStreamGetFlags)>);
static_assert(agrees<&functions::stream_is_capturing, decltype(cuStreamIsCapturing)>);
static_assert(agrees<&functions::thread_exchange_stream_capture_mode, decltype(cuThreadExchangeStreamCaptureMode)>);
static_assert(agrees<&functions::module_get_loading_mode, decltype(cuModuleGetLoadingMode)>);
static_assert(agrees<&functions::stream_write_value_32, decltype(cuStreamWriteValue32)>);
static_assert(agrees<&functions::stream_wait_value_32, decltype(cuStreamWaitValue32)>);
static_assert(agrees<&functions::stream_batch_mem_op, decltype(cuStreamBatchMemOp)>);
static_assert(agrees<&functions::event_create, decltype(cuEventCreate)>);
static_assert(agrees<&functions::event_destroy, decltype(cuEventDestroy)>);
static_assert(agrees<&functions::event_record, decltype(cuEventRecord)>);
static_assert(agrees<&functions::event_query, decltype(cuEventQuery)>);

static_assert(std::is_same_v<ipc::address, CUdeviceptr> && std::is_same_v<ipc::device_number, CUdevice>);
static_assert(sizeof(ipc::uuid) == sizeof(CUuuid) && sizeof(ipc::ipc_memory_handle) == sizeof(CUipcMemHandle));

template <class Ours>
constexpr bool is(Ours ours, int theirs) {
  return static_cast<int>(ours) == theirs;
}

static_assert(is(status::success, CUDA_SUCCESS) && is(status::invalid_value, CUDA_ERROR_INVALID_VALUE));
static_assert(is(status::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY) && is(status::unknown, CUDA_ERROR_UNKNOWN));
static_assert(is(status::not_initialized, CUDA_ERROR_NOT_INITIALIZED));
static_assert(is(status::deinitialized, CUDA_ERROR_DEINITIALIZED) && is(status::stub_library, CUDA_ERROR_STUB_LIBRARY));
static_assert(is(status::call_requires_newer_driver, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER));
static_assert(is(status::device_unavailable, CUDA_ERROR_DEVICE_UNAVAILABLE));
static_assert(is(status::no_device, CUDA_ERROR_NO_DEVICE) && is(status::invalid_device, CUDA_ERROR_INVALID_DEVICE));
static_assert(is(status::device_not_licensed, CUDA_ERROR_DEVICE_NOT_LICENSED));
static_assert(is(status::invalid_context, CUDA_ERROR_INVALID_CONTEXT) && is(status::map_failed, CUDA_ERROR_MAP_FAILED));
static_assert(is(status::peer_access_unsupported, CUDA_ERROR_PEER_ACCESS_UNSUPPORTED));
static_assert(is(status::operating_system, CUDA_ERROR_OPERATING_SYSTEM));
static_assert(is(status::invalid_handle, CUDA_ERROR_INVALID_HANDLE) && is(status::not_found, CUDA_ERROR_NOT_FOUND));
static_assert(is(status::not_ready, CUDA_ERROR_NOT_READY) && is(status::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS));
static_assert(is(status::peer_access_already_enabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED));
static_assert(is(status::peer_access_not_enabled, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED));
static_assert(is(status::too_many_peers, CUDA_ERROR_TOO_MANY_PEERS));
static_assert(is(status::not_permitted, CUDA_ERROR_NOT_PERMITTED) &&
              is(status::not_supported, CUDA_ERROR_NOT_SUPPORTED));
static_assert(is(status::system_not_ready, CUDA_ERROR_SYSTEM_NOT_READY));
static_assert(is(status::system_driver_mismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH));
static_assert(is(status::compat_not_supported_on_device, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE));
static_assert(is(status::mps_connection_failed, CUDA_ERROR_MPS_CONNECTION_FAILED));
static_assert(is(status::mps_rpc_failure, CUDA_ERROR_MPS_RPC_FAILURE));
static_assert(is(status::mps_server_not_ready, CUDA_ERROR_MPS_SERVER_NOT_READY));
static_assert(is(status::mps_max_clients_reached, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED));
static_assert(is(status::mps_max_connections_reached, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED));
static_assert(is(ipc::device_attribute::unified_addressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING));
static_assert(is(ipc::device_attribute::flush_remote_writes, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES));
static_assert(is(ipc::pointer_attribute::context, CU_POINTER_ATTRIBUTE_CONTEXT));
static_assert(is(ipc::pointer_attribute::memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE));
static_assert(is(ipc::pointer_attribute::buffer_id, CU_POINTER_ATTRIBUTE_BUFFER_ID));
static_assert(is(ipc::pointer_attribute::is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED));
static_assert(is(ipc::pointer_attribute::device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL));
static_assert(is(ipc::pointer_attribute::ipc_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
static_assert(is(ipc::memory_type::host, CU_MEMORYTYPE_HOST) && is(ipc::memory_type::device, CU_MEMORYTYPE_DEVICE));
static_assert(is(ipc::memory_type::array, CU_MEMORYTYPE_ARRAY) && is(ipc::memory_type::unified, CU_MEMORYTYPE_UNIFIED));
static_assert(is(ipc::capture_status::none, CU_STREAM_CAPTURE_STATUS_NONE));
static_assert(is(ipc::capture_status::active, CU_STREAM_CAPTURE_STATUS_ACTIVE));
static_assert(is(ipc::capture_mode::of_all, CU_STREAM_CAPTURE_MODE_GLOBAL));
static_assert(is(ipc::capture_mode::of_thread, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(is(ipc::capture_mode::relaxed, CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(is(ipc::loading_mode::eager, CU_MODULE_EAGER_LOADING));
static_assert(is(ipc::loading_mode::lazy, CU_MODULE_LAZY_LOADING));
static_assert(is(ipc::word_wait_32, CU_STREAM_MEM_OP_WAIT_VALUE_32));
static_assert(is(ipc::word_write_32, CU_STREAM_MEM_OP_WRITE_VALUE_32));
static_assert(sizeof(ipc::word_operation) == sizeof(CUstreamBatchMemOpParams));
static_assert(offsetof(ipc::word_operation, at) == offsetof(CUstreamBatchMemOpParams, waitValue.address));
static_assert(offsetof(ipc::word_operation, value) == offsetof(CUstreamBatchMemOpParams, waitValue.value));
static_assert(offsetof(ipc::word_operation, flags) == offsetof(CUstreamBatchMemOpParams, waitValue.flags));
static_assert(offsetof(ipc::word_operation, at) == offsetof(CUstreamBatchMemOpParams, writeValue.address));
static_assert(offsetof(ipc::word_operation, flags) == offsetof(CUstreamBatchMemOpParams, writeValue.flags));
static_assert(is(ipc::open_with_peer_access, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
static_assert(is(ipc::stream_non_blocking, CU_STREAM_NON_BLOCKING));
static_assert(is(ipc::event_without_timing, CU_EVENT_DISABLE_TIMING));
static_assert(is(ipc::event_between_processes, CU_EVENT_INTERPROCESS));
static_assert(is(ipc::host_memory_portable, CU_MEMHOSTALLOC_PORTABLE));
static_assert(is(ipc::managed_memory_global, CU_MEM_ATTACH_GLOBAL));
static_assert(is(ipc::wait_until_at_least, CU_STREAM_WAIT_VALUE_GEQ) &&
              is(ipc::wait_until_equal, CU_STREAM_WAIT_VALUE_EQ));
static_assert(is(ipc::wait_then_flush, CU_STREAM_WAIT_VALUE_FLUSH));

}  // namespace

// cuda.h renames a function whose signature has changed: the macro contains the name that the library exports.
#define HOCKET_TEST_TEXT(...) #__VA_ARGS__
#define HOCKET_TEST_SYMBOL(function) HOCKET_TEST_TEXT(function)

TEST_CASE("functions of the driver are looked up by the names that belong to their signatures") {
  const std::set<std::string> exported = {HOCKET_TEST_SYMBOL(cuInit),
                                          HOCKET_TEST_SYMBOL(cuDriverGetVersion),
                                          HOCKET_TEST_SYMBOL(cuGetErrorName),
                                          HOCKET_TEST_SYMBOL(cuGetErrorString),
                                          HOCKET_TEST_SYMBOL(cuDeviceGetCount),
                                          HOCKET_TEST_SYMBOL(cuDeviceGet),
                                          HOCKET_TEST_SYMBOL(cuDeviceGetUuid),
                                          HOCKET_TEST_SYMBOL(cuDeviceGetAttribute),
                                          HOCKET_TEST_SYMBOL(cuDevicePrimaryCtxRetain),
                                          HOCKET_TEST_SYMBOL(cuCtxGetCurrent),
                                          HOCKET_TEST_SYMBOL(cuCtxSetCurrent),
                                          HOCKET_TEST_SYMBOL(cuCtxGetDevice),
                                          HOCKET_TEST_SYMBOL(cuCtxEnablePeerAccess),
                                          HOCKET_TEST_SYMBOL(cuModuleGetLoadingMode),
                                          HOCKET_TEST_SYMBOL(cuMemAlloc),
                                          HOCKET_TEST_SYMBOL(cuMemAllocManaged),
                                          HOCKET_TEST_SYMBOL(cuMemFree),
                                          HOCKET_TEST_SYMBOL(cuMemHostAlloc),
                                          HOCKET_TEST_SYMBOL(cuMemFreeHost),
                                          HOCKET_TEST_SYMBOL(cuMemGetAddressRange),
                                          HOCKET_TEST_SYMBOL(cuPointerGetAttribute),
                                          HOCKET_TEST_SYMBOL(cuPointerGetAttributes),
                                          HOCKET_TEST_SYMBOL(cuMemcpyAsync),
                                          HOCKET_TEST_SYMBOL(cuIpcGetMemHandle),
                                          HOCKET_TEST_SYMBOL(cuIpcOpenMemHandle),
                                          HOCKET_TEST_SYMBOL(cuIpcCloseMemHandle),
                                          HOCKET_TEST_SYMBOL(cuStreamCreate),
                                          HOCKET_TEST_SYMBOL(cuStreamDestroy),
                                          HOCKET_TEST_SYMBOL(cuStreamQuery),
                                          HOCKET_TEST_SYMBOL(cuStreamSynchronize),
                                          HOCKET_TEST_SYMBOL(cuStreamGetCtx),
                                          HOCKET_TEST_SYMBOL(cuStreamGetFlags),
                                          HOCKET_TEST_SYMBOL(cuStreamIsCapturing),
                                          HOCKET_TEST_SYMBOL(cuThreadExchangeStreamCaptureMode),
                                          HOCKET_TEST_SYMBOL(cuStreamWaitEvent),
                                          HOCKET_TEST_SYMBOL(cuStreamWriteValue32),
                                          HOCKET_TEST_SYMBOL(cuStreamWaitValue32),
                                          HOCKET_TEST_SYMBOL(cuStreamBatchMemOp),
                                          HOCKET_TEST_SYMBOL(cuEventCreate),
                                          HOCKET_TEST_SYMBOL(cuEventDestroy),
                                          HOCKET_TEST_SYMBOL(cuEventRecord),
                                          HOCKET_TEST_SYMBOL(cuEventQuery)};
  std::set<std::string> asked;
  ipc::driver_functions all;
  ipc::for_each_function(all, [&](const char* name, auto&) { asked.insert(name); });
  CHECK(asked == exported);
}
#endif
