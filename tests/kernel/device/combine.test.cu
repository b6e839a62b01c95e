// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the code of threads that reduce 2 to 8 buffers on the host: it gives the bits of kernel/host/element_kernel.hpp,
// for every alignment of each buffer, in place or not. With a GPU, the kernels are tested too.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;
using device::contribution;

namespace {

/// 12 bytes, so that four elements fill three packs.
struct color {
  float red, green, blue;
};
struct blend {
  HOCKET_HOST_DEVICE color operator()(const color& under, const color& over) const {
    return {under.red + over.red, over.green - under.green, under.blue < over.blue ? over.blue : under.red};
  }
};

/// Not commutative, three bytes.
struct rotate_in {
  HOCKET_HOST_DEVICE triple operator()(const triple& a, const triple& b) const {
    return {{static_cast<std::uint8_t>(a.bytes[1] + b.bytes[0]), static_cast<std::uint8_t>(a.bytes[2] ^ b.bytes[1]),
             static_cast<std::uint8_t>(a.bytes[0] - b.bytes[2])}};
  }
};

/// Not marked as a device function: usable in tests on the host, but not in a kernel.
struct for_the_host_only {
  int operator()(int a, int b) const { return a ^ b; }
};

template <class T>
std::vector<T> values(int rank, std::size_t count) {
  if constexpr (std::is_same_v<T, color>) {
    const auto numbers = samples<float>(rank, 3 * count);
    std::vector<color> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back({numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2]});
    return all;
  } else {
    return samples<T>(rank, count);
  }
}

/// Result of the host's element kernel, between prepare and finish if the sources are plain elements.
template <class Op, class T, contribution Kind, std::size_t Sources, class Element>
std::vector<Element> by_host_kernel(const Op& op, const std::vector<std::vector<Element>>& sources, std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  std::vector<partial> prepared[Sources];
  const void* from[Sources];
  for (std::size_t k = 0; k < Sources; ++k) {
    for (const Element& value : sources[k]) {
      if constexpr (device::combination<Op, T, Sources, Kind>::prepares) {
        prepared[k].push_back(reduction::prepare(op, value));
      } else {
        prepared[k].push_back(value);
      }
    }
    from[k] = prepared[k].data();
  }
  std::vector<partial> sums(count);
  hocket::kernel::element_kernel_of<Op, T>.combine_many(&op, sums.data(), from, Sources, count);
  std::vector<Element> result;
  for (const partial& sum : sums) {
    if constexpr (device::combination<Op, T, Sources, Kind>::prepares) {
      result.push_back(reduction::finish(op, sum, static_cast<int>(Sources)));
    } else {
      result.push_back(sum);
    }
  }
  return result;
}

/// Runs the kernel's body for each of `threads` threads. `alias`: the source that is the destination; -1: none.
template <class Op, class T, contribution Kind, std::size_t Sources>
bool same_as_kernel(const Op& op, std::size_t count, std::size_t offset, int alias) {
  using body_type = device::combination<Op, T, Sources, Kind>;
  using element = typename body_type::element;
  std::vector<std::vector<element>> sources;
  std::vector<guarded<element>> buffers;
  for (std::size_t k = 0; k < Sources; ++k) {
    sources.push_back(values<element>(static_cast<int>(k), count));
    buffers.emplace_back(sources.back(), (offset * (k + 1)) % 16);
  }
  const auto expected = by_host_kernel<Op, T, Kind, Sources>(op, sources, count);
  guarded<element> apart(count, (offset * 5) % 16);
  guarded<element>& to = alias < 0 ? apart : buffers[static_cast<std::size_t>(alias)];
  body_type body{op, to.elements().data(), {}};
  for (std::size_t k = 0; k < Sources; ++k) body.from[k] = buffers[k].elements().data();
  const std::size_t threads = 3;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    device::visit(
        body.parts(count), thread, threads, [&](std::size_t first) { body.on_group(first); },
        [&](std::size_t i) { body.on_element(i); });
  }
  bool intact = apart.intact();
  for (const auto& buffer : buffers) intact = intact && buffer.intact();
  return intact && same_bytes<element>(to.elements(), expected);
}

template <class Op, class T, contribution Kind, std::size_t Sources>
void check_sources(const Op& op) {
  bool good = true;
  for (std::size_t count : {0U, 1U, 2U, 7U, 16U, 33U, 64U, 131U}) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      for (int alias : {-1, 0, static_cast<int>(Sources) - 1}) {
        if (same_as_kernel<Op, T, Kind, Sources>(op, count, offset, alias)) continue;
        good = false;
        UNSCOPED_INFO("count " << count << ", offset " << offset << ", in place of " << alias);
      }
    }
  }
  INFO(Sources << " sources of " << hocket::scalar_name<T>());
  CHECK(good);
}

template <class T, contribution Kind = contribution::prepared, class Op>
void check(const Op& op) {
  check_sources<Op, T, Kind, 2>(op);
  check_sources<Op, T, Kind, 3>(op);
  check_sources<Op, T, Kind, 4>(op);
  check_sources<Op, T, Kind, 5>(op);
  check_sources<Op, T, Kind, 8>(op);
}

template <class T, contribution Kind, std::size_t Sources, class Op>
void check_on_gpu(const Op& op, std::size_t count) {
  using element = typename device::combination<Op, T, Sources, Kind>::element;
  for (std::size_t offset = 0; offset < 16; offset += 3) {
    std::vector<std::vector<element>> sources;
    std::vector<std::unique_ptr<device_vector<element>>> buffers;
    const element* from[Sources];
    for (std::size_t k = 0; k < Sources; ++k) {
      sources.push_back(values<element>(static_cast<int>(k), count));
      buffers.push_back(std::make_unique<device_vector<element>>(sources.back(), (offset * (k + 1)) % 16));
      from[k] = buffers.back()->data();
    }
    device_vector<element> to(count, (offset * 5) % 16);
    cudaStream_t stream = nullptr;
    check_cuda(cudaStreamCreate(&stream));
    const auto cause = device::combine<T, Kind>(cuda::stream_ref(stream), op, to.data(), from, count);
    INFO(cause.message());
    CHECK_FALSE(static_cast<bool>(cause));
    const auto result = to.values();
    check_cuda(cudaStreamDestroy(stream));
    const auto expected = by_host_kernel<Op, T, Kind, Sources>(op, sources, count);
    CHECK(same_bytes<element>(result, expected));
  }
}

}  // namespace

TEST_CASE("numbers are combined to the bits of the host's element kernel") {
  check<float>(std::plus<>{});
  check<double>(std::plus<double>{});
  check<hocket::half>(std::plus<>{});
  check<hocket::bfloat16>(std::plus<>{});
  check<hocket::float8_e4m3>(std::plus<>{});
  check<std::int8_t>(std::multiplies<>{});
  check<std::uint16_t>(std::bit_xor<>{});
  check<std::int64_t>(hocket::maximum{});
  check<float>(hocket::minimum{});
  check<hocket::half>(hocket::maximum{});
}

TEST_CASE("one pass that prepares, combines and finishes gives the host's bits") {
  check<float, contribution::plain>(hocket::average{});
  check<hocket::bfloat16, contribution::plain>(hocket::average{});
  check<std::int32_t, contribution::plain>(hocket::average{});
  check<float, contribution::plain>(hocket::scaled_sum<float>{0.3F});
  check<float, contribution::plain>(hocket::detail::wired<std::plus<>, hocket::bfloat16>{});
  check<float, contribution::plain>(hocket::detail::exact_plus{});
  check<hocket::bfloat16>(hocket::average{});
  check<float, contribution::plain>(std::plus<>{});
}

TEST_CASE("user-defined types of any size and user-defined operations give the host's bits") {
  check<color>(blend{});
  check<triple>(rotate_in{});
  check<affine_map>(compose{});
  check<hocket::exact_sum<float>>(std::plus<>{});
  check<hocket::exact_sum<double>>(std::plus<>{});
  check<int>(for_the_host_only{});
}

TEST_CASE("a failure contains CUDA's error") {
  const auto cause = device::failure_of(cudaErrorInvalidDevice, "combine");
  CHECK(cause.code == hocket::errc::system);
  CHECK(cause.message() == "combine: system error: CUDA reported cudaErrorInvalidDevice: invalid device ordinal");
  CHECK_FALSE(static_cast<bool>(device::failure_of(cudaSuccess, "combine")));
}

TEST_CASE("without a GPU, a launch fails with a message, and a launch without elements succeeds") {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 0) return;
  float numbers[3] = {1, 2, 4};
  const float* const from[] = {numbers, numbers + 1};
  const cuda::stream_ref stream{static_cast<cudaStream_t>(nullptr)};
  const auto cause = device::combine<float>(stream, std::plus<>{}, numbers + 2, from, 1);
  CHECK(cause.code == hocket::errc::system);
  CHECK(cause.message().find("combine: system error: CUDA reported cudaError") == 0);
  CHECK_FALSE(static_cast<bool>(device::combine<float>(stream, std::plus<>{}, numbers + 2, from, 0)));
}

TEST_CASE("kernels give the bits of the host's element kernel", "[gpu]") {
  if (gpu_is_missing()) return;
  for (std::size_t count : {1U, 100U, 100003U}) {
    check_on_gpu<float, contribution::prepared, 2>(std::plus<>{}, count);
    check_on_gpu<float, contribution::prepared, 3>(std::plus<>{}, count);
    check_on_gpu<float, contribution::prepared, 8>(std::plus<>{}, count);
    check_on_gpu<hocket::bfloat16, contribution::prepared, 4>(std::plus<>{}, count);
    check_on_gpu<hocket::half, contribution::prepared, 2>(hocket::maximum{}, count);
    check_on_gpu<std::int8_t, contribution::prepared, 5>(std::multiplies<>{}, count);
    check_on_gpu<hocket::bfloat16, contribution::plain, 2>(hocket::average{}, count);
    check_on_gpu<color, contribution::prepared, 2>(blend{}, count);
    check_on_gpu<triple, contribution::prepared, 3>(rotate_in{}, count);
    check_on_gpu<affine_map, contribution::prepared, 2>(compose{}, count);
    check_on_gpu<float, contribution::plain, 2>(hocket::detail::exact_plus{}, count);
  }
}
