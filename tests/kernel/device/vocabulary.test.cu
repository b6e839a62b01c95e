// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels may call every conversion and every operation without --expt-relaxed-constexpr: compiling them is the test. The
// function that they call also runs on the host; with a GPU, both must give the same bits.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/scalar/scalar.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

using namespace hocket_test;

namespace {

/// Stores each result as one number: its bits, or a hash if it is longer. Also stores the names of results in `labels`.
struct sink {
  std::uint64_t* results = nullptr;
  const char** labels = nullptr;  ///< two for each result: its type, and its operation
  const char* type = "";
  const char* what = "";
  int count = 0;

  template <class T>
  HOCKET_HOST_DEVICE void operator()(const T& value) {
    unsigned char bytes[sizeof(T)] = {};
    memcpy(bytes, &value, sizeof(T));
    std::uint64_t result = 0;
    if constexpr (sizeof(T) <= sizeof result) {
      for (std::size_t i = 0; i < sizeof(T); ++i) result |= std::uint64_t{bytes[i]} << (8 * i);
    } else {
      for (unsigned char byte : bytes) result = (result ^ byte) * 0x100000001b3U;
    }
    if (results != nullptr) results[count] = result;
    if (labels != nullptr) {
      labels[2 * count] = type;
      labels[2 * count + 1] = what;
    }
    ++count;
  }
  template <class T>
  HOCKET_HOST_DEVICE void operator()(const char* label, const T& value) {
    what = label;
    (*this)(value);
  }
};

template <class Small>
HOCKET_HOST_DEVICE void convert(sink& out, const char* type, double value) {
  out.type = type;
  out("from float", Small(static_cast<float>(value)));
  out("from double", Small(value));
  out("from int64", Small(static_cast<std::int64_t>(value * 1000)));
  out("from uint8", Small(static_cast<std::uint8_t>(7)));
  out("to float", static_cast<float>(Small(value)));
  out("from bits", Small::from_bits(Small(value).bits()));
  out("max", std::numeric_limits<Small>::max());
  out("quiet_NaN", std::numeric_limits<Small>::quiet_NaN());
  // Arbitrary bits; with an exponent of ones: NaNs with and without a sign, and infinities.
  const std::uint64_t mixed = __builtin_bit_cast(std::uint64_t, value) * 0x9e3779b97f4a7c15U;
  const auto bits = static_cast<std::uint32_t>(mixed >> 32);
  out("from any bits", Small(__builtin_bit_cast(float, bits)));
  out("from NaN", Small(__builtin_bit_cast(float, bits | 0x7f800000U)));
  out("from infinity", Small(__builtin_bit_cast(float, (bits & 0x80000000U) | 0x7f800000U)));
  out("from subnormal", Small(__builtin_bit_cast(float, bits & 0x807fffffU)));
  out("any bits to float", static_cast<float>(Small::from_bits(static_cast<typename Small::bits_type>(mixed >> 40))));
}

/// Replaces every NaN by one NaN, because the bits of a NaN that arithmetic gives depend on the processor.
template <class T>
HOCKET_HOST_DEVICE T with_one_nan(const T& value) {
  if constexpr (hocket::detail::is_float_or_double<T>) {
    return value == value ? value : hocket::detail::quiet_nan_of<T>;  // NOLINT: NaN
  } else {
    return value;
  }
}

template <class Op, class T>
HOCKET_HOST_DEVICE void reduce(sink& out, const char* label, const Op& op, const T& a, const T& b) {
  out.what = label;
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  if constexpr (reduction::prepares) {
    const auto first = reduction::prepare(op, a);
    const auto second = reduction::prepare(op, b);
    const auto sum = reduction::combine(op, static_cast<accumulator>(first), static_cast<accumulator>(second));
    out(with_one_nan(static_cast<typename reduction::partial>(sum)));
    out(with_one_nan(reduction::finish(op, static_cast<typename reduction::partial>(sum), 2)));
  } else {
    out(with_one_nan(static_cast<T>(reduction::combine(op, static_cast<accumulator>(a), static_cast<accumulator>(b)))));
  }
}

template <class T>
HOCKET_HOST_DEVICE void reduce_numbers(sink& out, const char* type, T a, T b) {
  out.type = type;
  reduce(out, "plus", std::plus<>{}, a, b);
  reduce(out, "plus<T>", std::plus<T>{}, a, b);
  reduce(out, "multiplies", std::multiplies<>{}, a, b);
  reduce(out, "minimum", hocket::minimum{}, a, b);
  reduce(out, "maximum", hocket::maximum{}, a, b);
  reduce(out, "average", hocket::average{}, a, b);
  reduce(out, "scaled_sum", hocket::scaled_sum<float>{0.7F}, a, b);
  if constexpr (hocket::is_floating<T>) {
    reduce(out, "minimum of one", hocket::minimum{}, a, std::numeric_limits<hocket::half>::quiet_NaN() < 1 ? b : a);
    reduce(out, "maximum of zeros", hocket::maximum{}, static_cast<T>(-0.0F), static_cast<T>(0.0F));
  }
}

HOCKET_HOST_DEVICE int call_everything(sink out, double a, double b) {
  convert<hocket::half>(out, "half", a);
  convert<hocket::bfloat16>(out, "bfloat16", a);
  convert<hocket::float8_e4m3>(out, "float8_e4m3", a);
  convert<hocket::float8_e5m2>(out, "float8_e5m2", a);

  reduce_numbers(out, "float", static_cast<float>(a), static_cast<float>(b));
  reduce_numbers(out, "double", a, b);
  reduce_numbers(out, "half", static_cast<hocket::half>(a), static_cast<hocket::half>(b));
  reduce_numbers(out, "bfloat16", static_cast<hocket::bfloat16>(a), static_cast<hocket::bfloat16>(b));
  reduce_numbers(out, "float8_e4m3", static_cast<hocket::float8_e4m3>(a), static_cast<hocket::float8_e4m3>(b));
  reduce_numbers(out, "float8_e5m2", static_cast<hocket::float8_e5m2>(a), static_cast<hocket::float8_e5m2>(b));

  // Small enough for their product, because the result of an overflow is not defined.
  const auto i = static_cast<std::int32_t>(static_cast<std::int64_t>(a * 4) % 10'007);
  const auto j = static_cast<std::int32_t>(static_cast<std::int64_t>(b * 4) % 10'007);
  reduce_numbers(out, "int32", i, j);
  reduce_numbers(out, "int64", static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  out.type = "int32";
  reduce(out, "bit_and", std::bit_and<>{}, i, j);
  reduce(out, "bit_or", std::bit_or<>{}, i, j);
  reduce(out, "bit_xor", std::bit_xor<>{}, i, j);
  reduce(out, "logical_and", std::logical_and<>{}, i, j);
  reduce(out, "logical_or", std::logical_or<>{}, i, j);

  out.type = "float";
  reduce(out, "plus, wire type bfloat16", hocket::detail::wired<std::plus<>, hocket::bfloat16>{}, static_cast<float>(a),
         static_cast<float>(b));
  reduce(out, "exact_plus", hocket::detail::exact_plus{}, static_cast<float>(a), static_cast<float>(b));
  out.type = "double";
  reduce(out, "exact_plus", hocket::detail::exact_plus{}, a, b);
  return out.count;
}

__global__ void call_everything_there(const double* a, const double* b, std::uint64_t* results, int each, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count)
    call_everything({.results = results + static_cast<std::size_t>(i) * static_cast<std::size_t>(each)}, a[i], b[i]);
}

std::vector<std::uint64_t> results_of(double a, double b) {
  std::vector<std::uint64_t> results(static_cast<std::size_t>(call_everything({}, a, b)));
  call_everything({.results = results.data()}, a, b);
  return results;
}

}  // namespace

TEST_CASE("the function that kernels call gives different results for different values on the host") {
  CHECK(results_of(1.5, 2.25) == results_of(1.5, 2.25));
  CHECK(results_of(1.5, 2.25) != results_of(1.5, 2.5));
}

TEST_CASE("every conversion and operation gives the host's bits on the GPU", "[gpu]") {
  if (gpu_is_missing()) return;
  const int count = 4096;
  const std::vector<double> a = samples<double>(0, count);
  const std::vector<double> b = samples<double>(1, count);
  const auto each = static_cast<std::size_t>(call_everything({}, a[0], b[0]));
  std::vector<const char*> labels(2 * each);
  call_everything({.labels = labels.data()}, a[0], b[0]);
  device_vector<double> first(a);
  device_vector<double> second(b);
  device_vector<std::uint64_t> results(each * count);
  call_everything_there<<<(count + 127) / 128, 128>>>(first.data(), second.data(), results.data(),
                                                      static_cast<int>(each), count);
  REQUIRE(cudaGetLastError() == cudaSuccess);
  const std::vector<std::uint64_t> got = results.values();
  std::vector<int> wrong(each);
  std::vector<std::string> examples(each);
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<std::uint64_t> expected = results_of(a[i], b[i]);
    for (std::size_t k = 0; k < each; ++k) {
      if (got[i * each + k] == expected[k] || wrong[k]++ != 0) continue;
      std::ostringstream text;
      text << std::hex << got[i * each + k] << " instead of " << expected[k] << std::hexfloat << " of " << a[i]
           << " and " << b[i];
      examples[k] = text.str();
    }
  }
  for (std::size_t k = 0; k < each; ++k) {
    INFO(labels[2 * k] << ", " << labels[2 * k + 1] << ": " << examples[k]);
    CHECK(wrong[k] == 0);
  }
}
