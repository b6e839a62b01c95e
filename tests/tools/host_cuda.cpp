// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A library with the names of CUDA's driver whose one device is memory of the host: for programs that load the driver by
// its name, so that what they do with a device runs where none is. All work is done at once.
#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

using namespace hocket::cuda_ipc;

namespace {

enum class kind { device, managed, pinned };

struct allocation {
  std::size_t bytes = 0;
  kind what = kind::device;
};

std::mutex lock;
std::map<address, allocation> allocations;
thread_local context_handle current = nullptr;

context_handle the_context() { return reinterpret_cast<context_handle>(&allocations); }

status allocate(address& result, std::size_t bytes, kind what) {
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) return status::out_of_memory;
  std::memset(memory, 0x5a, bytes);
  result = reinterpret_cast<std::uintptr_t>(memory);
  const std::lock_guard guard(lock);
  allocations[result] = {bytes, what};
  return status::success;
}

status give_back(address which) {
  const std::lock_guard guard(lock);
  if (allocations.erase(which) == 0) return status::invalid_value;
  std::free(reinterpret_cast<void*>(which));
  return status::success;
}

const allocation* find(address at) {
  auto after = allocations.upper_bound(at);
  if (after == allocations.begin()) return nullptr;
  --after;
  return at < after->first + after->second.bytes ? &after->second : nullptr;
}

/// A handle that only has to be another one each time.
template <class Handle>
status make(Handle* result) {
  *result = static_cast<Handle>(std::malloc(1));
  return status::success;
}
template <class Handle>
status destroy(Handle which) {
  std::free(static_cast<void*>(which));
  return status::success;
}

}  // namespace

extern "C" {

status cuInit(unsigned) { return status::success; }
status cuDriverGetVersion(int* result) { return *result = 13000, status::success; }
status cuGetErrorName(status, const char** result) { return *result = "an error of the double", status::success; }
status cuGetErrorString(status, const char** result) { return *result = "no words", status::success; }

status cuDeviceGetCount(int* result) { return *result = 1, status::success; }
status cuDeviceGet(device_number* result, int ordinal) { return *result = ordinal, status::success; }
status cuDevicePrimaryCtxRetain(context_handle* result, device_number) {
  return *result = the_context(), status::success;
}
status cuDevicePrimaryCtxRelease_v2(device_number) { return status::success; }
status cuCtxGetCurrent(context_handle* result) { return *result = current, status::success; }
status cuCtxSetCurrent(context_handle what) { return current = what, status::success; }
status cuCtxGetDevice(device_number* result) { return *result = 0, status::success; }

status cuMemAlloc_v2(address* result, std::size_t bytes) { return allocate(*result, bytes, kind::device); }
status cuMemAllocManaged(address* result, std::size_t bytes, unsigned) {
  return allocate(*result, bytes, kind::managed);
}
status cuMemFree_v2(address which) { return give_back(which); }
status cuMemHostAlloc(void** result, std::size_t bytes, unsigned) {
  address made = 0;
  const status said = allocate(made, bytes, kind::pinned);
  *result = reinterpret_cast<void*>(made);
  return said;
}
status cuMemFreeHost(void* which) { return give_back(reinterpret_cast<std::uintptr_t>(which)); }
status cuPointerGetAttributes(unsigned count, pointer_attribute* which, void** results, address at) {
  const std::lock_guard guard(lock);
  const allocation* const found = find(at);
  for (unsigned i = 0; i < count; ++i) {
    if (which[i] == pointer_attribute::memory_type) {
      const auto type = found == nullptr              ? memory_type::unknown
                        : found->what == kind::pinned ? memory_type::host
                                                      : memory_type::device;
      std::memcpy(results[i], &type, sizeof type);
    } else if (which[i] == pointer_attribute::is_managed) {
      const std::uint32_t managed = found != nullptr && found->what == kind::managed ? 1 : 0;
      std::memcpy(results[i], &managed, sizeof managed);
    } else {
      return status::not_supported;
    }
  }
  return status::success;
}
status cuMemcpyAsync(address to, address from, std::size_t bytes, stream_handle) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return status::success;
}

status cuStreamCreate(stream_handle* result, unsigned) { return make(result); }
status cuStreamDestroy_v2(stream_handle which) { return destroy(which); }
status cuStreamQuery(stream_handle) { return status::success; }
status cuStreamSynchronize(stream_handle) { return status::success; }
status cuStreamGetCtx(stream_handle, context_handle* result) { return *result = the_context(), status::success; }
status cuStreamIsCapturing(stream_handle, capture_status* result) {
  return *result = capture_status::none, status::success;
}
status cuStreamWaitEvent(stream_handle, event_handle, unsigned) { return status::success; }
status cuEventCreate(event_handle* result, unsigned) { return make(result); }
status cuEventDestroy_v2(event_handle which) { return destroy(which); }
status cuEventRecord(event_handle, stream_handle) { return status::success; }
status cuEventQuery(event_handle) { return status::success; }
status cuEventSynchronize(event_handle) { return status::success; }

// What measuring does not need.
#define NOT_SUPPORTED(name) \
  status name() { return status::not_supported; }
NOT_SUPPORTED(cuDeviceGetUuid_v2)
NOT_SUPPORTED(cuDeviceGetAttribute)
NOT_SUPPORTED(cuDeviceCanAccessPeer)
NOT_SUPPORTED(cuCtxEnablePeerAccess)
NOT_SUPPORTED(cuMemGetAddressRange_v2)
NOT_SUPPORTED(cuPointerGetAttribute)
NOT_SUPPORTED(cuIpcGetMemHandle)
NOT_SUPPORTED(cuIpcOpenMemHandle_v2)
NOT_SUPPORTED(cuIpcCloseMemHandle)
NOT_SUPPORTED(cuIpcGetEventHandle)
NOT_SUPPORTED(cuIpcOpenEventHandle)
NOT_SUPPORTED(cuStreamWriteValue32_v2)
NOT_SUPPORTED(cuStreamWriteValue64_v2)
NOT_SUPPORTED(cuStreamWaitValue32_v2)
NOT_SUPPORTED(cuStreamWaitValue64_v2)
NOT_SUPPORTED(cuStreamBatchMemOp_v2)

}  // extern "C"
