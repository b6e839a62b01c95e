// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels may call every conversion and every operation without --expt-relaxed-constexpr: compiling them is the test. The
// function that they call runs here, too, on the host; where there is a GPU, both give the same bits.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/scalar/scalar.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

using namespace hocket_test;

namespace {

/// Any order of results; what counts is that every kind of bits goes in.
struct sink {
  std::uint64_t hash = 0;

  template <class T>
  HOCKET_HOST_DEVICE void operator()(const T& value) {
    unsigned char bytes[sizeof(T)] = {};
    memcpy(bytes, &value, sizeof(T));
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3U;
  }
};

template <class Small>
HOCKET_HOST_DEVICE void convert(sink& out, double value) {
  out(Small(static_cast<float>(value)));
  out(Small(value));
  out(Small(static_cast<std::int64_t>(value * 1000)));
  out(Small(static_cast<std::uint8_t>(7)));
  out(static_cast<float>(Small(value)));
  out(Small::from_bits(Small(value).bits()));
  out(std::numeric_limits<Small>::max());
  out(std::numeric_limits<Small>::quiet_NaN());
  // Bits of all kinds; with all ones in the exponent: NaNs with and without a sign, infinities too.
  const std::uint64_t mixed = __builtin_bit_cast(std::uint64_t, value) * 0x9e3779b97f4a7c15U;
  const auto bits = static_cast<std::uint32_t>(mixed >> 32);
  out(Small(__builtin_bit_cast(float, bits)));
  out(Small(__builtin_bit_cast(float, bits | 0x7f800000U)));
  out(Small(__builtin_bit_cast(float, (bits & 0x80000000U) | 0x7f800000U)));
  out(Small(__builtin_bit_cast(float, bits & 0x807fffffU)));
  out(static_cast<float>(Small::from_bits(static_cast<typename Small::bits_type>(mixed >> 40))));
}

template <class Op, class T>
HOCKET_HOST_DEVICE void reduce(sink& out, const Op& op, const T& a, const T& b) {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  if constexpr (reduction::prepares) {
    const auto first = reduction::prepare(op, a);
    const auto second = reduction::prepare(op, b);
    const auto sum = reduction::combine(op, static_cast<accumulator>(first), static_cast<accumulator>(second));
    out(static_cast<typename reduction::partial>(sum));
    out(reduction::finish(op, static_cast<typename reduction::partial>(sum), 2));
  } else {
    out(static_cast<T>(reduction::combine(op, static_cast<accumulator>(a), static_cast<accumulator>(b))));
  }
}

template <class T>
HOCKET_HOST_DEVICE void reduce_numbers(sink& out, T a, T b) {
  reduce(out, std::plus<>{}, a, b);
  reduce(out, std::plus<T>{}, a, b);
  reduce(out, std::multiplies<>{}, a, b);
  reduce(out, hocket::minimum{}, a, b);
  reduce(out, hocket::maximum{}, a, b);
  reduce(out, hocket::average{}, a, b);
  reduce(out, hocket::scaled_sum<float>{0.7F}, a, b);
  if constexpr (hocket::is_floating<T>) {
    reduce(out, hocket::minimum{}, a, std::numeric_limits<hocket::half>::quiet_NaN() < 1 ? b : a);
    reduce(out, hocket::maximum{}, static_cast<T>(-0.0F), static_cast<T>(0.0F));
  }
}

HOCKET_HOST_DEVICE std::uint64_t call_everything(double a, double b) {
  sink out;
  convert<hocket::half>(out, a);
  convert<hocket::bfloat16>(out, a);
  convert<hocket::float8_e4m3>(out, a);
  convert<hocket::float8_e5m2>(out, a);

  reduce_numbers(out, static_cast<float>(a), static_cast<float>(b));
  reduce_numbers(out, a, b);
  reduce_numbers(out, static_cast<hocket::half>(a), static_cast<hocket::half>(b));
  reduce_numbers(out, static_cast<hocket::bfloat16>(a), static_cast<hocket::bfloat16>(b));
  reduce_numbers(out, static_cast<hocket::float8_e4m3>(a), static_cast<hocket::float8_e4m3>(b));
  reduce_numbers(out, static_cast<hocket::float8_e5m2>(a), static_cast<hocket::float8_e5m2>(b));

  const auto i = static_cast<std::int32_t>(a * 4);
  const auto j = static_cast<std::int32_t>(b * 4);
  reduce_numbers(out, i, j);
  reduce_numbers(out, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  reduce(out, std::bit_and<>{}, i, j);
  reduce(out, std::bit_or<>{}, i, j);
  reduce(out, std::bit_xor<>{}, i, j);
  reduce(out, std::logical_and<>{}, i, j);
  reduce(out, std::logical_or<>{}, i, j);

  reduce(out, hocket::detail::wired<std::plus<>, hocket::bfloat16>{}, static_cast<float>(a), static_cast<float>(b));
  reduce(out, hocket::detail::exact_plus{}, static_cast<float>(a), static_cast<float>(b));
  reduce(out, hocket::detail::exact_plus{}, a, b);
  return out.hash;
}

__global__ void call_everything_there(const double* a, const double* b, std::uint64_t* hashes, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) hashes[i] = call_everything(a[i], b[i]);
}

}  // namespace

TEST_CASE("the function that kernels call tells values apart on the host") {
  CHECK(call_everything(1.5, 2.25) == call_everything(1.5, 2.25));
  CHECK(call_everything(1.5, 2.25) != call_everything(1.5, 2.5));
}

TEST_CASE("every conversion and operation gives the host's bits on the GPU", "[gpu]") {
  if (gpu_is_missing()) return;
  const int count = 4096;
  const std::vector<double> a = samples<double>(0, count);
  const std::vector<double> b = samples<double>(1, count);
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    expected.push_back(call_everything(a[at], b[at]));
  }
  device_vector<double> first(a);
  device_vector<double> second(b);
  device_vector<std::uint64_t> hashes(count);
  call_everything_there<<<(count + 127) / 128, 128>>>(first.data(), second.data(), hashes.data(), count);
  REQUIRE(cudaGetLastError() == cudaSuccess);
  CHECK(hashes.values() == expected);
}
