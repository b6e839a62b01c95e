// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys by which the largest elements are found: their order is that of values or of magnitudes, for every number of the
// small types. The result is that of a stable sort on the host.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/top_k.cuh>
#include <hocket/scalar/scalar.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;
using device::ranking;

namespace {

/// Type of comparisons, wide enough for all values of T.
template <class T>
using wide = std::conditional_t<std::is_integral_v<T>, long double, double>;

/// True if `a` comes before `b`, computed without keys: NaNs first.
template <ranking By, class T>
bool before(const T& a, const T& b) {
  auto first = static_cast<wide<T>>(a), second = static_cast<wide<T>>(b);
  if (std::isnan(first) || std::isnan(second)) return std::isnan(first) && !std::isnan(second);
  if (By == ranking::magnitude) {
    first = std::fabs(first);
    second = std::fabs(second);
  }
  return first > second;
}

template <ranking By, class T>
bool same_order(const T& a, const T& b) {
  using key = device::ordered_key<T, By>;
  return (key::of(a) > key::of(b)) == before<By>(a, b) && (key::of(b) > key::of(a)) == before<By>(b, a);
}

template <class T>
std::vector<T> special_values() {
  using limits = std::numeric_limits<T>;
  std::vector<T> all = {T(0), T(1), T(2), T(3), limits::max(), limits::lowest(), limits::min()};
  if constexpr (std::is_signed_v<T> || hocket::is_floating<T>) {
    for (int value : {-1, -2, -3}) all.push_back(static_cast<T>(value));
  }
  if constexpr (hocket::is_floating<T>) {
    for (const T& value : {limits::quiet_NaN(), limits::denorm_min(), static_cast<T>(-0.0F)}) {
      all.push_back(value);
      all.push_back(static_cast<T>(-value));
    }
    if constexpr (limits::has_infinity) {
      all.push_back(limits::infinity());
      all.push_back(static_cast<T>(-limits::infinity()));
    }
  }
  const auto more = samples<T>(0, 50);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

template <class T>
void check_pairs(const std::vector<T>& all) {
  int wrong = 0;
  for (const T& a : all) {
    for (const T& b : all) {
      wrong += same_order<ranking::value>(a, b) && same_order<ranking::magnitude>(a, b) ? 0 : 1;
      const auto key =
          device::ordered_key<T, ranking::value>::of(a) | device::ordered_key<T, ranking::magnitude>::of(a);
      wrong += (key & ~device::ordered_key<T, ranking::value>::all) != 0 ? 1 : 0;
    }
  }
  INFO(hocket::scalar_name<T>());
  CHECK(wrong == 0);
}

/// Checks neighbours only, which is enough for sorted numbers.
template <class T, ranking By>
void check_every_number() {
  std::vector<T> all;
  for (unsigned bits = 0; bits < 1U << (8 * sizeof(T)); ++bits) {
    all.push_back(T::from_bits(static_cast<decltype(T().bits())>(bits)));
  }
  std::stable_sort(all.begin(), all.end(), [](const T& a, const T& b) { return before<By>(a, b); });
  bool good = true;
  for (std::size_t i = 1; i < all.size(); ++i) good = good && same_order<By>(all[i - 1], all[i]);
  INFO(hocket::scalar_name<T>());
  CHECK(good);
}

template <class Index>
struct chosen {
  std::vector<Index> indices;
  template <ranking By, class T>
  static chosen by_sort(const std::vector<T>& from, std::size_t k) {
    std::vector<Index> order(from.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return before<By>(from[a], from[b]); });
    order.resize(k);
    return {order};
  }
};

/// Does the work of the kernels before and after the sort. The host sorts by keys alone.
template <ranking By, class T, class Index>
void check_steps(const std::vector<T>& from, std::size_t k) {
  using making = device::key_making<T, Index, By>;
  std::vector<typename making::key::type> keys(from.size());
  std::vector<Index> order(from.size());
  const auto visit_all = [](const auto& body, std::size_t count) {
    for (std::size_t thread = 0; thread < 3; ++thread) {
      device::visit(
          device::selecting::elements(count), thread, 3, [&](std::size_t first) { body.on_group(first); },
          [&](std::size_t i) { body.on_element(i); });
    }
  };
  visit_all(making{keys.data(), order.data(), from.data()}, from.size());
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return keys[a] > keys[b]; });
  std::vector<T> values(k);
  std::vector<Index> indices(k);
  visit_all(device::gathering<T, Index>{values.data(), indices.data(), from.data(), order.data()}, k);
  const auto expected = chosen<Index>::template by_sort<By>(from, k);
  CHECK(indices == expected.indices);
  for (std::size_t i = 0; i < k; ++i) {
    if (!same_bytes<T>({&values[i], 1}, {&from[expected.indices[i]], 1})) FAIL_CHECK("value " << i);
  }
}

template <ranking By, class T, class Index>
void check_on_gpu(std::size_t count, std::size_t k) {
  auto values = samples<T>(0, count);
  if constexpr (hocket::is_floating<T>) values[count / 3] = std::numeric_limits<T>::quiet_NaN();
  device_vector<T> from(values, 1), largest(k, 1);
  device_vector<Index> indices(k, 1);
  std::size_t bytes = 0;
  REQUIRE_FALSE(static_cast<bool>(device::top_k_workspace<T, Index>(count, bytes)));
  device_vector<std::byte> memory(bytes);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream));
  const auto cause = device::top_k<By>(cuda::stream_ref(stream), {memory.data(), bytes}, largest.data(), indices.data(),
                                       k, static_cast<const T*>(from.data()), count);
  INFO(cause.message());
  CHECK_FALSE(static_cast<bool>(cause));
  const auto expected = chosen<Index>::template by_sort<By>(values, k);
  CHECK(indices.values() == expected.indices);
  std::vector<T> of_host;
  for (const Index at : expected.indices) of_host.push_back(values[at]);
  CHECK(same_bytes<T>(largest.values(), of_host));
  check_cuda(cudaStreamDestroy(stream));
}

}  // namespace

TEST_CASE("keys have the order of values, and that of magnitudes, NaNs first") {
  check_pairs(special_values<float>());
  check_pairs(special_values<double>());
  check_pairs(special_values<hocket::half>());
  check_pairs(special_values<std::int8_t>());
  check_pairs(special_values<std::uint8_t>());
  check_pairs(special_values<std::int16_t>());
  check_pairs(special_values<std::int32_t>());
  check_pairs(special_values<std::uint32_t>());
  check_pairs(special_values<std::int64_t>());
  check_pairs(special_values<std::uint64_t>());
}

TEST_CASE("keys of every small float have the order of values or magnitudes") {
  check_every_number<hocket::half, ranking::value>();
  check_every_number<hocket::half, ranking::magnitude>();
  check_every_number<hocket::bfloat16, ranking::value>();
  check_every_number<hocket::bfloat16, ranking::magnitude>();
  check_every_number<hocket::float8_e4m3, ranking::value>();
  check_every_number<hocket::float8_e5m2, ranking::magnitude>();
}

TEST_CASE("the largest elements and their indices are those of a stable sort") {
  auto floats = samples<float>(0, 300);
  floats[17] = floats[250] = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t k : {0U, 1U, 2U, 57U, 300U}) {
    check_steps<ranking::value, float, std::uint32_t>(floats, k);
    check_steps<ranking::magnitude, float, std::uint64_t>(floats, k);
    check_steps<ranking::magnitude, std::int8_t, std::uint32_t>(samples<std::int8_t>(0, 300), k);  // many are equal
  }
}

TEST_CASE("invalid arguments are rejected with a message, even without a GPU") {
  const device::workspace none;
  const cuda::stream_ref stream{static_cast<cudaStream_t>(nullptr)};
  float values[1] = {};
  std::uint32_t indices[1] = {};
  const float* const from = values;
  CHECK_FALSE(static_cast<bool>(device::top_k(stream, none, values, indices, 0, from, 1)));
  const auto long_k = device::top_k(stream, none, values, indices, 3, from, 1);
  CHECK(long_k.code == hocket::errc::invalid_argument);
  CHECK(long_k.message().find("k is 3, but the buffer has only 1 elements") != std::string::npos);
  const auto many = device::top_k(stream, none, values, indices, 1, from, (std::size_t{1} << 32) + 1);
  CHECK(many.code == hocket::errc::invalid_argument);
  CHECK(many.message().find("32-bit indices are too small") != std::string::npos);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 0) return;
  std::size_t bytes = 0;
  CHECK(device::top_k_workspace<float, std::uint32_t>(1, bytes).message().find("CUDA reported cudaError") !=
        std::string::npos);
}

TEST_CASE("kernels find the elements that the host's sort finds", "[gpu]") {
  if (gpu_is_missing()) return;
  for (std::size_t count : {1U, 1000U, 1000003U}) {
    check_on_gpu<ranking::magnitude, float, std::uint32_t>(count, count / 100 + 1);
    check_on_gpu<ranking::value, hocket::half, std::uint32_t>(count, count / 10 + 1);
    check_on_gpu<ranking::value, std::int32_t, std::uint32_t>(count, count);
    check_on_gpu<ranking::magnitude, double, std::uint64_t>(count, count / 2 + 1);
  }
}
