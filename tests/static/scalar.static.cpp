// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compile-time properties of the small floating-point types. Compiling this file is the test.
#include <hocket/scalar/scalar.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace {

using hocket::bfloat16;
using hocket::float8_e4m3;
using hocket::float8_e5m2;
using hocket::half;

template <class T, std::size_t Size>
constexpr bool is_storage_type() {
  return sizeof(T) == Size && alignof(T) == Size && std::is_trivial_v<T> && std::is_trivially_copyable_v<T> &&
         std::is_standard_layout_v<T> && std::has_unique_object_representations_v<T> &&
         std::is_same_v<decltype(T{}.bits()), typename T::bits_type> && sizeof(typename T::bits_type) == Size;
}

static_assert(is_storage_type<half, 2>());
static_assert(is_storage_type<bfloat16, 2>());
static_assert(is_storage_type<float8_e4m3, 1>());
static_assert(is_storage_type<float8_e5m2, 1>());

template <class From, class To>
constexpr bool only_explicitly = std::is_constructible_v<To, From> && !std::is_convertible_v<From, To>;

template <class T>
constexpr bool converts_as_promised() {
  return std::is_nothrow_convertible_v<T, float> && std::is_convertible_v<T, double> && only_explicitly<float, T> &&
         only_explicitly<double, T> && only_explicitly<int, T> && only_explicitly<bool, T> &&
         only_explicitly<unsigned long long, T> && std::is_nothrow_constructible_v<T, float> &&
         !std::is_constructible_v<T, long double> && !std::is_constructible_v<T, void*>;
}

static_assert(converts_as_promised<half>());
static_assert(converts_as_promised<bfloat16>());
static_assert(converts_as_promised<float8_e4m3>());
static_assert(converts_as_promised<float8_e5m2>());

static_assert(only_explicitly<half, bfloat16>);
static_assert(only_explicitly<bfloat16, half>);
static_assert(only_explicitly<half, float8_e4m3>);
static_assert(only_explicitly<float8_e5m2, float8_e4m3>);

template <class T>
constexpr bool calculates_as_float() {
  return std::totally_ordered<T> && std::totally_ordered_with<T, float> && std::is_same_v<decltype(T{} + T{}), float> &&
         std::is_same_v<decltype(T{} * 2), float> && std::is_same_v<decltype(T{} * 2.0), double> &&
         std::is_same_v<decltype(-T{}), float> && std::is_same_v<std::common_type_t<T, float>, float>;
}

static_assert(calculates_as_float<half>());
static_assert(calculates_as_float<bfloat16>());
static_assert(calculates_as_float<float8_e4m3>());
static_assert(calculates_as_float<float8_e5m2>());

// Conversions and comparisons work in constant expressions.
static_assert(half(1.0F).bits() == 0x3c00 && half(-2).bits() == 0xc000 && half::from_bits(0x3555) < 1.0F / 3);
static_assert(bfloat16(1.0).bits() == 0x3f80 && bfloat16(half(0.5F)).bits() == 0x3f00);
static_assert(float8_e4m3(1.0F).bits() == 0x38 && float8_e4m3(1e30).bits() == 0x7e);
static_assert(float8_e5m2(1.0F).bits() == 0x3c && float8_e5m2(-1e30F).bits() == 0xfb);
static_assert(half(1e-7F).bits() == 2 && half::from_bits(1) == 0x1p-24F && half(1e300).bits() == 0x7c00);
static_assert(half(std::numeric_limits<float>::quiet_NaN()).bits() == 0x7fff);
static_assert(half{}.bits() == 0 && half(-0.0F).bits() == 0x8000 && half(-0.0) == half(0));

// round_to_odd truncates, and sets the last bit if other bits were lost.
static_assert(hocket::detail::round_to_odd(0.0) == 0 && hocket::detail::round_to_odd(-0x1p-1000) == -0x1p-149F);
static_assert(hocket::detail::round_to_odd(1.0) == 1.0F && hocket::detail::round_to_odd(1 + 0x1p-52) == 1 + 0x1p-23F);

static_assert(std::numeric_limits<half>::is_specialized && std::numeric_limits<const half>::max() == 65504);
static_assert(std::numeric_limits<bfloat16>::digits == 8 && std::numeric_limits<bfloat16>::is_signed);
static_assert(!std::numeric_limits<float8_e4m3>::has_infinity && std::numeric_limits<float8_e5m2>::has_infinity);

static_assert(std::is_same_v<hocket::accumulator_t<half>, float>);
static_assert(std::is_same_v<hocket::accumulator_t<const bfloat16>, float>);
static_assert(std::is_same_v<hocket::accumulator_t<float8_e4m3>, float>);
static_assert(std::is_same_v<hocket::accumulator_t<float8_e5m2>, float>);
static_assert(std::is_same_v<hocket::accumulator_t<float>, float>);
static_assert(std::is_same_v<hocket::accumulator_t<double>, double>);
static_assert(std::is_same_v<hocket::accumulator_t<std::int8_t>, std::int8_t>);

static_assert(hocket::is_floating<half> && hocket::is_floating<const bfloat16> && hocket::is_floating<float8_e4m3>);
static_assert(hocket::is_floating<float8_e5m2> && hocket::is_floating<float> && hocket::is_floating<long double>);
static_assert(!hocket::is_floating<int> && !hocket::is_floating<bool> && !hocket::is_floating<std::byte>);

template <class T>
constexpr std::string_view name = hocket::scalar_name<T>();

static_assert(name<float> == "float" && name<const double> == "double" && name<half> == "half");
static_assert(name<bfloat16> == "bfloat16" && name<float8_e4m3> == "float8_e4m3" && name<float8_e5m2> == "float8_e5m2");
static_assert(name<std::int8_t> == "int8" && name<std::uint8_t> == "uint8" && name<std::int16_t> == "int16");
static_assert(name<long> == name<long long> && name<unsigned long> == "uint64" && name<int> == "int32");
static_assert(name<bool> == "bool" && name<std::byte> == "byte");

struct plain {};
struct fixed16 {};
static_assert(name<plain> == "custom" && std::is_same_v<hocket::accumulator_t<plain>, plain>);

}  // namespace

template <>
struct hocket::scalar_traits<fixed16> : hocket::scalar_defaults<fixed16> {
  using accumulator = double;
  static constexpr const char* name = "fixed16";
};

static_assert(std::is_same_v<hocket::accumulator_t<fixed16>, double> && name<fixed16> == "fixed16");
static_assert(!hocket::is_floating<fixed16>);
