// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How callers hand over memory of a device, and the stream in whose order it is read and written:
///
///     namespace gpu = hocket::cuda;
///     hocket::all_reduce(comm, gpu::device(in), gpu::device(out), std::plus<>{}, hocket::with(gpu::stream_ref(stream)));
///
/// A view made here is no range, so it can't be passed where the processor would read it. It says what the caller takes the
/// memory for; each call asks the driver, and refuses a wrong word.
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
class driver;  // transport/cuda_ipc/driver.hpp: whoever makes the calls needs it
}  // namespace cuda_ipc
namespace cuda {

/// Where a view's elements are.
struct device_memory {
  static constexpr cuda_ipc::memory_space space = cuda_ipc::memory_space::device;
};
struct pinned_memory {
  static constexpr cuda_ipc::memory_space space = cuda_ipc::memory_space::pinned;
};
struct managed_memory {
  static constexpr cuda_ipc::memory_space space = cuda_ipc::memory_space::managed;
};

/// What errors say of a call whose buffers have one of these, beside its types: on all ranks they must, or on none.
struct tagged_memory {};

/// What of CUDA's kinds of memory a space is one of.
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

/// Elements in the memory of a device, of cudaMalloc, cudaMallocAsync or cuMemAlloc: a span of pointers of the device.
template <lasting_buffer Range>
constexpr auto device(Range&& elements) {
  return detail::placed<device_memory>(elements);
}
template <class T>
constexpr device_buffer<T, device_memory> device(T* data, std::size_t size) noexcept {
  return {data, size};
}

/// Elements in pinned memory of the host, of cudaMallocHost, cudaHostAlloc or cudaHostRegister.
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

/// A stream of a driver, as a property of a call: for drivers of one's own. `stream_ref` is the one for programs.
template <class Driver>
struct stream_of {
  using kind = hocket::kind::stream;
  using driver_type = Driver;
  Driver* through = nullptr;  ///< null: this machine's, which is loaded
  cuda_ipc::stream_handle handle = nullptr;
};

/// The stream in whose order a call reads and writes memory of a device. There is no default: who means the legacy
/// stream, or that of the thread, says `cudaStreamLegacy` or `cudaStreamPerThread`. Does not own the stream.
class stream_ref : public stream_of<cuda_ipc::driver> {
 public:
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

/// How calls bring memory of a device to the host and back. Must be equal on all ranks.
struct staging {
  using kind = hocket::kind::staging;
  /// So much of a buffer at once. Not yet measured on a GPU.
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

/// A buffer whose memory, of one element at least, is not what its tag says.
HOCKET_COLD inline failure wrong_tag(const char* buffer, const void* data, cuda_ipc::memory_space said,
                                     cuda_ipc::memory_space is) {
  std::string text = std::string(buffer) + " was passed as " + tag_for(said) + " and ";
  if (data == nullptr) {
    text += "is a null pointer, though its size is not 0: has its allocation failed?";
  } else if (is == cuda_ipc::memory_space::plain) {
    text +=
        "lies in plain memory of the host, or in memory that was freed; pass all buffers of a call as they are, "
        "without tags, if they are the host's";
  } else {
    text += std::string("lies in ") + words_for(is) + "; the right tag is " + tag_for(is);
  }
  return make_failure(errc::invalid_argument, std::move(text));
}

/// What is wrong with how so many bytes are to be staged.
inline outcome check_chunk(std::size_t chunk_bytes, std::size_t bytes) {
  constexpr std::size_t most_chunks = std::size_t{1} << 30;  // they are counted in 32 bits
  if (chunk_bytes != 0 && bytes / chunk_bytes < most_chunks) [[likely]]
    return {};
  if (chunk_bytes != 0) {
    return make_failure(errc::invalid_argument, "cuda::staging says chunks of " + std::to_string(chunk_bytes) +
                                                    " bytes, too many of them for " + std::to_string(bytes) +
                                                    " bytes: name a larger number");
  }
  return make_failure(errc::invalid_argument,
                      "cuda::staging says chunks of 0 bytes: name a number, or leave it out for " +
                          std::to_string(cuda::staging{}.chunk_bytes));
}

}  // namespace detail
HOCKET_END_NAMESPACE
