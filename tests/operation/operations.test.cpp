// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The laws of the reduction operations, for every pair and triple of difficult values.
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/operation/traits.hpp>

#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using hocket::is_commutative_v;
using hocket::is_exact_v;

namespace {

template <class T>
std::vector<T> awkward_values() {
  using limits = std::numeric_limits<T>;
  std::vector<T> all = {T(0.0F), T(1.0F), limits::max(), limits::lowest(), limits::min()};
  if constexpr (hocket::is_floating<T>) {
    for (const T each : {static_cast<T>(-T(0.0F)), T(-1.0F), limits::quiet_NaN(), limits::denorm_min()})
      all.push_back(each);
    if (limits::has_infinity) all.insert(all.end(), {limits::infinity(), static_cast<T>(-limits::infinity())});
  }
  return all;
}

template <class T>
bool same(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Checks that `Op` is commutative and associative to the bit, and idempotent.
template <class Op, class T>
void check_lattice() {
  const Op op{};
  const auto values = awkward_values<T>();
  for (const T a : values) {
    const bool is_nan = static_cast<bool>(a != a);
    CHECK((is_nan || same(op(a, a), a)));
    for (const T b : values) {
      CHECK(same(op(a, b), op(b, a)));
      CHECK((is_nan || b != b || same(op(a, b), a) || same(op(a, b), b)));
      if (is_nan) CHECK(op(a, b) != op(a, b));
      for (const T c : values) CHECK(same(op(op(a, b), c), op(a, op(b, c))));
    }
  }
}

template <class T>
void check_extremes() {
  check_lattice<hocket::minimum, T>();
  check_lattice<hocket::maximum, T>();
}

}  // namespace

TEST_CASE("minimum and maximum are associative, commutative and idempotent to the bit") {
  check_extremes<float>();
  check_extremes<double>();
  check_extremes<hocket::half>();
  check_extremes<hocket::bfloat16>();
  check_extremes<hocket::float8_e5m2>();
  check_extremes<int>();
  check_extremes<unsigned char>();
}

TEST_CASE("minimum and maximum order numbers and signed zeros, and propagate NaN") {
  CHECK(hocket::minimum{}(1, 2) == 1);
  CHECK(hocket::maximum{}(1, 2) == 2);
  CHECK(std::signbit(hocket::minimum{}(0.0F, -0.0F)));
  CHECK(!std::signbit(hocket::maximum{}(0.0F, -0.0F)));
  CHECK(std::isnan(hocket::minimum{}(NAN, 1.0F)));
  CHECK(std::isnan(hocket::maximum{}(1.0F, NAN)));
}

// A function object for float rounds integers; and values that are equivalent under `<` need not be equal.
struct labelled {
  float value;
  int label;
  friend bool operator<(const labelled& a, const labelled& b) { return a.value < b.value; }
};
static_assert(hocket::is_exact_v<std::plus<>, int> && hocket::is_exact_v<std::plus<int>, int>);
static_assert(!hocket::is_exact_v<std::plus<float>, int> && !hocket::is_exact_v<std::multiplies<char>, int>);
static_assert(hocket::is_exact_v<hocket::minimum, float> && hocket::is_commutative_v<hocket::maximum, hocket::half>);
static_assert(!hocket::is_exact_v<hocket::minimum, labelled> && !hocket::is_commutative_v<hocket::maximum, labelled>);

TEST_CASE("average divides once, by the number of ranks; integers are truncated") {
  CHECK(hocket::average::finish(10.0F, 4) == 2.5F);
  CHECK(hocket::average::finish(7, 2) == 3);
  CHECK(hocket::average::finish(-7, 2) == -3);
  CHECK(hocket::average::combine(1.5, 2.5) == 4.0);
  CHECK(hocket::average::prepare(3.0F) == 3.0F);
  using small = hocket::reduction<hocket::average, hocket::half>;
  static_assert(std::is_same_v<small::partial, float>);
  const float large = small::prepare({}, static_cast<hocket::half>(60000.0F));
  CHECK(static_cast<float>(small::finish({}, small::combine({}, large, large), 2)) == 60000.0F);
}

TEST_CASE("scaled_sum multiplies before it adds") {
  const hocket::scaled_sum<float> thrice{3};
  CHECK(thrice.prepare(2.0F) == 6.0F);
  CHECK(thrice.combine(6.0F, 1.0F) == 7.0F);
  CHECK(thrice.finish(7.0F, 5) == 7.0F);
  CHECK(static_cast<float>(thrice.prepare(hocket::bfloat16(2.0F))) == 6.0F);
}

namespace {

struct declared {
  static constexpr bool commutative = true;
  int operator()(int a, int b) const { return a ^ b; }
};

struct owns_memory {
  std::string text;
  int operator()(int a, int b) const { return a + b; }
};

const auto undeclared = [](int a, int b) { return a + b; };

}  // namespace

struct complex_pair {
  std::complex<float> a, b;
  friend complex_pair operator+(complex_pair x, complex_pair) { return x; }
};

TEST_CASE("addition is commutative for complex numbers, but not for types that contain them") {
  CHECK(is_commutative_v<std::plus<>, std::complex<float>>);
  CHECK(is_commutative_v<std::plus<std::complex<double>>, std::complex<double>>);
  CHECK_FALSE(is_commutative_v<std::plus<>, complex_pair>);
  CHECK_FALSE(is_commutative_v<std::plus<>, std::pair<std::complex<float>, std::complex<float>>>);
  CHECK_FALSE(is_commutative_v<std::plus<>, std::array<std::complex<float>, 2>>);
  CHECK_FALSE(is_exact_v<std::plus<>, std::complex<double>>);
}

TEST_CASE("an operation is commutative only if it is a known operation or declares it") {
  CHECK(is_commutative_v<std::plus<>, float>);
  CHECK(is_commutative_v<std::plus<float>, float>);
  CHECK(is_commutative_v<std::multiplies<>, hocket::half>);
  CHECK(!is_commutative_v<std::plus<>, std::string>);
  CHECK(!is_commutative_v<std::plus<>, hocket_test::affine_map>);
  CHECK(!is_commutative_v<hocket_test::compose, hocket_test::affine_map>);
  CHECK(is_commutative_v<std::bit_xor<>, unsigned>);
  CHECK(!is_commutative_v<std::minus<>, int>);
  CHECK(!is_commutative_v<decltype(undeclared), int>);
  CHECK(is_commutative_v<declared, int>);
  CHECK(is_commutative_v<std::plus<>, hocket::exact_sum<double>>);
}

TEST_CASE("only operations that never round are exact") {
  CHECK(is_exact_v<std::plus<>, int>);
  CHECK(!is_exact_v<std::plus<>, float>);
  CHECK(!is_exact_v<std::plus<>, hocket::half>);
  CHECK(!is_exact_v<hocket::average, float>);
  CHECK(is_exact_v<hocket::minimum, float>);
  CHECK(is_exact_v<std::plus<>, hocket::exact_sum<float>>);
  CHECK(!is_exact_v<decltype(undeclared), int>);
}

/// The average of every sum that the type holds, for numbers of ranks around the limits of the integer types.
template <class T>
void check_average_of_integers() {
  using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  using limits = std::numeric_limits<T>;
  for (const int ranks : {1, 2, 127, 128, 129, 255, 256, 257, 32767, 32768, 65535, 65536}) {
    for (const T sum : {T(0), T(1), T(100), T(127), limits::max(), limits::min(), static_cast<T>(limits::max() / 2)}) {
      INFO("the sum " << +sum << " over " << ranks << " ranks");
      CHECK(wide{hocket::average::finish(sum, ranks)} == wide{sum} / static_cast<wide>(ranks));
    }
  }
}

/// The sum of an average wraps around, which the check of undefined behaviour accepts.
template <class T>
void check_wrapping() {
  constexpr T largest = std::numeric_limits<T>::max(), lowest = std::numeric_limits<T>::lowest();
  CHECK(hocket::average::combine(largest, T{1}) == lowest);
  CHECK(hocket::average::combine(largest, largest) == static_cast<T>(-2));
  CHECK(hocket::average::combine(lowest, lowest) == 0);
  CHECK(hocket::scaled_sum<T>::combine(largest, T{1}) == lowest);
}

TEST_CASE("sums of integers in an average and a scaled sum wrap around") {
  check_wrapping<std::int8_t>();
  check_wrapping<std::int16_t>();
  check_wrapping<std::int32_t>();
  check_wrapping<std::int64_t>();
}

TEST_CASE("the average of integers is the truncated quotient for any number of ranks") {
  check_average_of_integers<std::int8_t>();
  check_average_of_integers<std::uint8_t>();
  check_average_of_integers<std::int16_t>();
  check_average_of_integers<std::uint16_t>();
  check_average_of_integers<std::int32_t>();
  check_average_of_integers<std::uint32_t>();
  check_average_of_integers<std::int64_t>();
  check_average_of_integers<std::uint64_t>();
}

TEST_CASE("reduction_for accepts only operations and types that can be combined") {
  CHECK(hocket::reduction_for<std::plus<>, float>);
  CHECK(hocket::reduction_for<std::plus<>, hocket::half>);
  CHECK(hocket::reduction_for<std::plus<>, hocket::float8_e4m3>);
  CHECK(hocket::reduction_for<hocket::average, hocket::bfloat16>);
  CHECK(hocket::reduction_for<hocket_test::compose, hocket_test::affine_map>);
  CHECK(!hocket::reduction_for<std::plus<>, hocket_test::affine_map>);
  CHECK(!hocket::reduction_for<hocket_test::compose, float>);
  CHECK(!hocket::reduction_for<owns_memory, int>);
  CHECK(!hocket::reduction_for<std::plus<>, std::string>);
  CHECK(!hocket::reduction_for<std::plus<>, int*>);
  CHECK(!hocket::reduction_for<std::plus<>, const int>);
}

TEST_CASE("small floating-point types are combined in float, unless the operation takes only them") {
  const auto narrow = [](hocket::half a, hocket::half b) { return hocket::half(a + b); };
  const auto wide = [](float a, float b) { return a + b; };
  CHECK(std::is_same_v<hocket::reduction<std::plus<>, hocket::half>::accumulator, float>);
  CHECK(std::is_same_v<hocket::reduction<decltype(wide), hocket::half>::accumulator, float>);
  CHECK(std::is_same_v<hocket::reduction<decltype(narrow), hocket::half>::accumulator, hocket::half>);
  CHECK(std::is_same_v<hocket::reduction<std::plus<hocket::half>, hocket::half>::accumulator, hocket::half>);
}

TEST_CASE("wired operations store the wire type and combine in the accumulator") {
  using wired = hocket::detail::wired<std::plus<>, hocket::bfloat16>;
  using reduction = hocket::reduction<wired, float>;
  CHECK(std::is_same_v<reduction::partial, hocket::bfloat16>);
  CHECK(std::is_same_v<reduction::accumulator, float>);
  CHECK(is_commutative_v<wired, float>);
  const wired op{};
  CHECK(static_cast<float>(reduction::prepare(op, 1.00390625F)) == 1.0F);
  CHECK(reduction::combine(op, 256.0F, 1.0F) == 257.0F);
  CHECK(reduction::finish(op, hocket::bfloat16(3.0F), 9) == 3.0F);
}

TEST_CASE("there is a rank-count-invariant form for sums of float and double, and for exact operations") {
  using hocket::detail::rank_count_invariant_operation;
  CHECK(std::is_same_v<rank_count_invariant_operation<std::plus<>, float>::type, hocket::detail::exact_plus>);
  CHECK(std::is_same_v<rank_count_invariant_operation<std::plus<double>, double>::type, hocket::detail::exact_plus>);
  CHECK(std::is_same_v<rank_count_invariant_operation<std::plus<>, int>::type, std::plus<>>);
  CHECK(std::is_same_v<rank_count_invariant_operation<hocket::minimum, int>::type, hocket::minimum>);
  CHECK(std::is_same_v<rank_count_invariant_operation<hocket::minimum, float>::type,
                       hocket::detail::canonical<hocket::minimum>>);
  CHECK(std::is_void_v<rank_count_invariant_operation<std::multiplies<>, float>::type>);
  CHECK(std::is_void_v<rank_count_invariant_operation<hocket::average, float>::type>);
}
