// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How callers pass device memory, and the stream that orders its reads and writes:
///
///     namespace gpu = hocket::cuda;
///     hocket::all_reduce(comm, gpu::device(in), gpu::device(out), std::plus<>{}, hocket::with(gpu::stream_ref(stream)));
///
/// A view made here is not a range, so it can't be passed to code that would read it on the host. Its tag names the
/// kind of memory; each call asks the driver, and refuses a wrong tag.
#pragma once

#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/option_kinds.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

struct CUstream_st;  // CUDA's: cudaStream_t and CUstream are pointers to it

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {
class driver;  // transport/cuda_ipc/driver.hpp: needed by code that makes the calls
}  // namespace cuda_ipc
namespace cuda {

/// The memory that holds a view's elements.
struct device_memory {
  static constexpr cuda_ipc::memory_space space = cuda_ipc::memory_space::device;  ///< the kind of memory
};
/// Pinned host memory.
struct pinned_memory {
  static constexpr cuda_ipc::memory_space space = cuda_ipc::memory_space::pinned;  ///< the kind of memory
};
/// Managed memory.
struct managed_memory {
  static constexpr cuda_ipc::memory_space space = cuda_ipc::memory_space::managed;  ///< the kind of memory
};

/// Added to the types that errors print for a call on tagged buffers: all ranks must pass tagged buffers, or none must.
struct tagged_memory {};

/// A space that is one of CUDA's kinds of memory.
template <class Space>
concept memory = requires {
  { Space::space } -> std::convertible_to<cuda_ipc::memory_space>;
};

namespace detail {

template <class Space, class Range>
constexpr auto placed(Range&& range) {
  using element_type = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
  return device_buffer<element_type, Space>(std::ranges::data(range), std::ranges::size(range));
}

}  // namespace detail

/// Elements in device memory, of cudaMalloc, cudaMallocAsync or cuMemAlloc, by a span of device pointers.
template <lasting_buffer Range>
constexpr auto device(Range&& elements) {
  return detail::placed<device_memory>(elements);
}
template <class T>
constexpr device_buffer<T, device_memory> device(T* data, std::size_t size) noexcept {
  return {data, size};
}

/// Elements in pinned host memory, of cudaMallocHost, cudaHostAlloc or cudaHostRegister.
template <lasting_buffer Range>
constexpr auto pinned(Range&& elements) {
  return detail::placed<pinned_memory>(elements);
}
template <class T>
constexpr device_buffer<T, pinned_memory> pinned(T* data, std::size_t size) noexcept {
  return {data, size};
}

/// Elements in managed memory, of cudaMallocManaged.
template <lasting_buffer Range>
constexpr auto managed(Range&& elements) {
  return detail::placed<managed_memory>(elements);
}
template <class T>
constexpr device_buffer<T, managed_memory> managed(T* data, std::size_t size) noexcept {
  return {data, size};
}

/// A stream of a driver, as a property of a call, for user-defined drivers. Programs use `stream_ref`.
template <class Driver>
struct stream_of {
  using kind = hocket::kind::stream;
  using driver_type = Driver;
  Driver* through = nullptr;                 ///< null: the driver of this machine, which the call loads
  cuda_ipc::stream_handle handle = nullptr;  ///< the driver's handle
};

/// The stream that orders a call's reads and writes of device memory. There is no default: to use the legacy stream or
/// that of the thread, pass `cudaStreamLegacy` or `cudaStreamPerThread`. Does not own the stream.
class stream_ref : public stream_of<cuda_ipc::driver> {
 public:
  /// From a stream of the CUDA runtime or driver.
  stream_ref(CUstream_st* stream) noexcept  // NOLINT: implicit, as for cuda::stream_ref of libcu++
      : stream_of{nullptr, reinterpret_cast<cuda_ipc::stream_handle>(stream)} {}
  /// From anything that has a stream, such as libcu++'s `::cuda::stream_ref`.
  template <class Stream>
    requires requires(const Stream& from) {
      { from.get() } -> std::convertible_to<CUstream_st*>;
    }
  stream_ref(const Stream& from) noexcept : stream_ref(static_cast<CUstream_st*>(from.get())) {}  // NOLINT: implicit
  stream_ref(std::nullptr_t) = delete;
  stream_ref(int) = delete;
};

/// How calls copy device memory to the host and back. Must be equal on all ranks.
struct staging {
  using kind = hocket::kind::staging;
  /// Bytes of a buffer that are copied at a time. Not yet measured on a GPU.
  std::size_t chunk_bytes = std::size_t{2} << 20;
};

}  // namespace cuda

namespace detail {

inline const char* tag_for(cuda_ipc::memory_space what) noexcept {
  switch (what) {
    case cuda_ipc::memory_space::pinned: return "cuda::pinned(...)";
    case cuda_ipc::memory_space::device: return "cuda::device(...)";
    case cuda_ipc::memory_space::managed: return "cuda::managed(...)";
    case cuda_ipc::memory_space::plain: break;
  }
  return "";
}

/// Returns the error for a non-empty buffer whose memory is not of the kind that its tag names.
HOCKET_COLD inline failure wrong_tag(const char* buffer, const void* data, cuda_ipc::memory_space declared,
                                     cuda_ipc::memory_space is) {
  std::string text = std::string(buffer) + " was passed as " + tag_for(declared) + " and ";
  if (data == nullptr) {
    text += "is a null pointer, though its size is not 0: check that its allocation succeeded";
  } else if (is == cuda_ipc::memory_space::plain) {
    text +=
        "lies in plain host memory, or in memory that was freed; pass all buffers of a call without tags "
        "if they are in host memory";
  } else {
    text += std::string("lies in ") + words_for(is) + "; the right tag is " + tag_for(is);
  }
  return make_failure(errc::invalid_argument, std::move(text));
}

/// Checks the chunk size with which `bytes` are staged.
inline outcome check_chunk(std::size_t chunk_bytes, std::size_t bytes) {
  constexpr std::size_t most_chunks = std::size_t{1} << 30;  // they are counted in 32 bits
  if (chunk_bytes != 0 && bytes / chunk_bytes < most_chunks) [[likely]]
    return {};
  if (chunk_bytes != 0) {
    return make_failure(errc::invalid_argument, "cuda::staging sets chunks of " + std::to_string(chunk_bytes) +
                                                    " bytes, which are too many chunks for " + std::to_string(bytes) +
                                                    " bytes: use a larger chunk size");
  }
  return make_failure(errc::invalid_argument,
                      "cuda::staging sets chunks of 0 bytes: use a positive size, or omit it for the default, " +
                          std::to_string(cuda::staging{}.chunk_bytes));
}

}  // namespace detail
HOCKET_END_NAMESPACE
