// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A test double of the CUDA driver library whose only device uses host memory: for programs that load the driver with
// dlopen, and for UCX's CUDA modules, so that their device code runs on machines without a GPU. Device memory is mapped
// twice: the address that callers get can't be read or written, as on a real CPU, and copies use the other mapping. All
// work is done immediately.
#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

using namespace hocket::cuda_ipc;

namespace {

enum class kind { device, managed, pinned };

struct allocation {
  std::size_t bytes = 0;
  kind what = kind::device;
  std::byte* open = nullptr;  ///< the same memory, in the mapping that can be read and written
  std::uint64_t id = 0;
};

std::mutex lock;
std::map<address, allocation> allocations;
std::uint64_t allocated = 0;
thread_local context_handle current = nullptr;

context_handle the_context() { return reinterpret_cast<context_handle>(&allocations); }

std::size_t whole_pages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

std::byte* map(int file, std::size_t bytes, int protection) {
  void* const made = ::mmap(nullptr, whole_pages(bytes), protection, MAP_SHARED, file, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

status allocate(address& result, std::size_t bytes, kind what) {
  if (bytes == 0) return status::invalid_value;
  const int file = ::memfd_create("device", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return status::out_of_memory;
  std::byte* const open = map(file, bytes, PROT_READ | PROT_WRITE);
  std::byte* const seen = what == kind::device ? map(file, bytes, PROT_NONE) : open;
  ::close(file);
  if (open == nullptr || seen == nullptr) return status::out_of_memory;
  std::memset(open, 0x5a, bytes);
  result = reinterpret_cast<std::uintptr_t>(seen);
  const std::lock_guard guard(lock);
  allocations[result] = {bytes, what, open, ++allocated};
  return status::success;
}

status give_back(address which) {
  const std::lock_guard guard(lock);
  const auto found = allocations.find(which);
  if (found == allocations.end()) return status::invalid_value;
  auto* const seen = reinterpret_cast<std::byte*>(which);
  const std::size_t size = whole_pages(found->second.bytes);
  ::munmap(seen, size);
  if (seen != found->second.open) ::munmap(found->second.open, size);
  allocations.erase(found);
  return status::success;
}

/// Returns the allocation that contains `at`, with its address; or the end.
auto find(address at) {
  auto after = allocations.upper_bound(at);
  if (after == allocations.begin()) return allocations.end();
  --after;
  return at < after->first + after->second.bytes ? after : allocations.end();
}

/// Returns the address at which `at` can be read and written.
std::byte* open_at(address at) {
  const std::lock_guard guard(lock);
  const auto found = find(at);
  return found == allocations.end() ? reinterpret_cast<std::byte*>(at) : found->second.open + (at - found->first);
}

/// Creates a handle, which only needs to be unique.
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
status cuGetErrorString(status, const char** result) { return *result = "no description", status::success; }

status cuDeviceGetCount(int* result) { return *result = 1, status::success; }
status cuDeviceGetName(char* result, int size, device_number) {
  std::strncpy(result, "a double", static_cast<std::size_t>(size));
  return status::success;
}
status cuDeviceTotalMem_v2(std::size_t* result, device_number) {
  return *result = std::size_t{1} << 30, status::success;
}
status cuDeviceGetUuid_v2(uuid* result, device_number) { return *result = {}, status::success; }
/// All optional attributes are 0.
status cuDeviceGetAttribute(int* result, device_attribute which, device_number) {
  return *result = which == device_attribute::unified_addressing ? 1 : 0, status::success;
}
status cuDevicePrimaryCtxGetState(device_number, unsigned* flags, int* active) {
  *flags = 0;
  return *active = 1, status::success;
}
status cuDeviceGet(device_number* result, int ordinal) { return *result = ordinal, status::success; }
status cuDevicePrimaryCtxRetain(context_handle* result, device_number) {
  return *result = the_context(), status::success;
}
status cuDevicePrimaryCtxRelease_v2(device_number) { return status::success; }
status cuCtxGetCurrent(context_handle* result) { return *result = current, status::success; }
status cuCtxSetCurrent(context_handle what) { return current = what, status::success; }
status cuCtxGetDevice(device_number* result) {
  *result = 0;
  return current != nullptr ? status::success : status::invalid_context;
}
status cuCtxPushCurrent_v2(context_handle what) { return current = what, status::success; }
status cuCtxPopCurrent_v2(context_handle* result) {
  if (result != nullptr) *result = current;
  return current = nullptr, status::success;
}
status cuCtxGetId(context_handle, std::uint64_t* result) { return *result = 1, status::success; }

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
status cuMemHostRegister_v2(void*, std::size_t, unsigned) { return status::success; }
status cuMemHostUnregister(void*) { return status::success; }
status cuMemGetAddressRange_v2(address* base, std::size_t* bytes, address at) {
  const std::lock_guard guard(lock);
  const auto found = find(at);
  if (found == allocations.end()) return status::not_found;
  if (base != nullptr) *base = found->first;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return status::success;
}

status cuPointerGetAttribute(void* result, pointer_attribute which, address at) {
  const std::lock_guard guard(lock);
  const auto found = find(at);
  if (found == allocations.end()) return status::invalid_value;
  const auto answer = [&](auto value) { return std::memcpy(result, &value, sizeof value), status::success; };
  switch (which) {
    case pointer_attribute::context: return answer(the_context());
    case pointer_attribute::memory_type:
      return answer(found->second.what == kind::pinned ? memory_type::host : memory_type::device);
    case pointer_attribute::buffer_id: return answer(found->second.id);
    case pointer_attribute::is_managed: return answer(std::uint32_t{found->second.what == kind::managed});
    case pointer_attribute::device_ordinal: return answer(0);
    default: return status::not_supported;
  }
}
/// A driver reports type 0 for memory that it does not own.
status cuPointerGetAttributes(unsigned count, pointer_attribute* which, void** results, address at) {
  for (unsigned i = 0; i < count; ++i) {
    if (cuPointerGetAttribute(results[i], which[i], at) == status::success) continue;
    if (which[i] == pointer_attribute::memory_type || which[i] == pointer_attribute::is_managed) {
      std::memset(results[i], 0, sizeof(std::uint32_t));
    }
  }
  return status::success;
}
status cuPointerSetAttribute(const void*, pointer_attribute, address) { return status::success; }
status cuMemcpyAsync(address to, address from, std::size_t bytes, stream_handle) {
  if (bytes > 0) std::memmove(open_at(to), open_at(from), bytes);
  return status::success;
}
status cuMemcpyDtoDAsync_v2(address to, address from, std::size_t bytes, stream_handle on) {
  return cuMemcpyAsync(to, from, bytes, on);
}
status cuMemcpyHtoD_v2(address to, const void* from, std::size_t bytes) {
  return cuMemcpyAsync(to, reinterpret_cast<std::uintptr_t>(from), bytes, nullptr);
}

status cuStreamCreate(stream_handle* result, unsigned) { return make(result); }
status cuStreamDestroy_v2(stream_handle which) { return destroy(which); }
status cuStreamQuery(stream_handle) { return status::success; }
status cuStreamSynchronize(stream_handle) { return status::success; }
status cuStreamGetCtx(stream_handle, context_handle* result) { return *result = the_context(), status::success; }
status cuStreamGetFlags(stream_handle, unsigned* result) { return *result = stream_non_blocking, status::success; }
status cuThreadExchangeStreamCaptureMode(capture_mode*) { return status::success; }
status cuModuleGetLoadingMode(loading_mode* result) { return *result = loading_mode::eager, status::success; }
status cuStreamIsCapturing(stream_handle, capture_status* result) {
  return *result = capture_status::none, status::success;
}
status cuStreamWaitEvent(stream_handle, event_handle, unsigned) { return status::success; }
status cuStreamAddCallback(stream_handle on, void (*call)(stream_handle, status, void*), void* argument, unsigned) {
  return call(on, status::success, argument), status::success;
}
status cuEventCreate(event_handle* result, unsigned) { return make(result); }
status cuEventDestroy_v2(event_handle which) { return destroy(which); }
status cuEventRecord(event_handle, stream_handle) { return status::success; }
status cuEventQuery(event_handle) { return status::success; }
status cuEventSynchronize(event_handle) { return status::success; }

/// Offers no functions beyond those in this file.
status cuGetProcAddress_v2(const char*, void** result, int, std::uint64_t, int* why) {
  *result = nullptr;
  if (why != nullptr) *why = 1;
  return status::not_found;
}
const char* nvmlErrorString(int) { return "an error of the double"; }

// Functions that a driver exports, but that are not used because attributes report them as unsupported.
#define NOT_SUPPORTED(name) \
  status name() { return status::not_supported; }
NOT_SUPPORTED(cuDeviceCanAccessPeer)
NOT_SUPPORTED(cuCtxEnablePeerAccess)
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
NOT_SUPPORTED(cuMemAddressFree)
NOT_SUPPORTED(cuMemAddressReserve)
NOT_SUPPORTED(cuMemCreate)
NOT_SUPPORTED(cuMemExportToShareableHandle)
NOT_SUPPORTED(cuMemGetAllocationGranularity)
NOT_SUPPORTED(cuMemGetAllocationPropertiesFromHandle)
NOT_SUPPORTED(cuMemImportFromShareableHandle)
NOT_SUPPORTED(cuMemMap)
NOT_SUPPORTED(cuMemPoolDestroy)
NOT_SUPPORTED(cuMemPoolExportPointer)
NOT_SUPPORTED(cuMemPoolExportToShareableHandle)
NOT_SUPPORTED(cuMemPoolImportFromShareableHandle)
NOT_SUPPORTED(cuMemPoolImportPointer)
NOT_SUPPORTED(cuMemPoolSetAccess)
NOT_SUPPORTED(cuMemRangeGetAttribute)
NOT_SUPPORTED(cuMemRelease)
NOT_SUPPORTED(cuMemRetainAllocationHandle)
NOT_SUPPORTED(cuMemSetAccess)
NOT_SUPPORTED(cuMemUnmap)

}  // extern "C"
