// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/operation/exact_sum.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using hocket::exact_sum;

template <class T>
using limits = std::numeric_limits<T>;

template <class T>
using pattern = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
pattern<T> bits(T value) {
  return std::bit_cast<pattern<T>>(value);
}

template <class T>
std::array<unsigned char, sizeof(exact_sum<T>)> bytes(const exact_sum<T>& sum) {
  return std::bit_cast<std::array<unsigned char, sizeof(exact_sum<T>)>>(sum);
}

template <class T>
exact_sum<T> sum_of(const std::vector<T>& values) {
  exact_sum<T> sum;
  for (const T value : values) sum.add(value);
  return sum;
}

/// Slow reference implementation: one signed counter per binary place, added and rounded place by place.
template <class T>
class counted_sum {
 public:
  void add(T value) {
    int exponent = 0;
    const T fraction = std::frexp(std::abs(value), &exponent);
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, limits<T>::digits));
    for (int i = 0; i != limits<T>::digits; ++i) {
      if ((significand >> i & 1U) == 0) continue;
      counts_.at(static_cast<std::size_t>(exponent - limits<T>::digits + i - lowest)) += std::signbit(value) ? -1 : 1;
    }
  }

  /// Returns the correctly rounded sum. An exact zero is +0.
  T value() const {
    bool negative = false;
    std::vector<int> places = normalized(counts_, negative);
    if (negative) {
      std::vector<long long> opposite = counts_;
      for (long long& count : opposite) count = -count;
      bool again = false;
      places = normalized(opposite, again);
      REQUIRE_FALSE(again);
    }
    int highest = static_cast<int>(places.size()) - 1;
    while (highest >= 0 && places[static_cast<std::size_t>(highest)] == 0) --highest;
    if (highest < 0) return T{0};

    const int last_kept = std::max(0, highest - limits<T>::digits + 1);
    std::uint64_t kept = 0;
    for (int i = highest; i >= last_kept; --i) {
      kept = 2 * kept + static_cast<std::uint64_t>(places[static_cast<std::size_t>(i)]);
    }
    const bool half = last_kept > 0 && places[static_cast<std::size_t>(last_kept - 1)] != 0;
    const bool more = last_kept > 1 &&
                      std::any_of(places.begin(), places.begin() + last_kept - 1, [](int place) { return place != 0; });
    if (half && (more || kept % 2 == 1)) ++kept;
    const T magnitude = std::ldexp(static_cast<T>(kept), last_kept + lowest);
    return negative ? -magnitude : magnitude;
  }

 private:
  static constexpr int lowest = limits<T>::min_exponent - limits<T>::digits;  // the exponent of the smallest subnormal

  static std::vector<int> normalized(const std::vector<long long>& counts, bool& negative) {
    std::vector<int> places;
    long long carry = 0;
    for (const long long count : counts) {
      const long long here = count + carry;
      const long long place = ((here % 2) + 2) % 2;
      places.push_back(static_cast<int>(place));
      carry = (here - place) / 2;
    }
    negative = carry < 0;
    return places;
  }

  std::vector<long long> counts_ =
      std::vector<long long>(static_cast<std::size_t>(limits<T>::max_exponent - lowest + 64), 0);
};

template <class T>
T counted(const std::vector<T>& values) {
  counted_sum<T> sum;
  for (const T value : values) sum.add(value);
  return sum.value();
}

/// Value of the lowest bit of limb `index` (limb 0: of the lowest bit above the flags).
template <class T>
T limb_unit(int index) {
  return std::ldexp(T{1}, limits<T>::min_exponent - limits<T>::digits + (index == 0 ? 0 : 64 * index - 4));
}

/// Number of limbs whose lowest and highest bits are finite values of T.
template <class T>
constexpr int whole_limbs = sizeof(T) == 4 ? 4 : 32;

enum class kind { any_bits, gradients, limb_edges, cancelling, subnormals };
constexpr std::array all_kinds{kind::any_bits, kind::gradients, kind::limb_edges, kind::cancelling, kind::subnormals};

template <class T>
T any_finite(std::mt19937_64& random) {
  for (;;) {
    const T value = std::bit_cast<T>(static_cast<pattern<T>>(random()));
    if (std::isfinite(value)) return value;
  }
}

template <class T>
std::vector<T> contributions(kind which, std::size_t count, std::mt19937_64& random) {
  std::normal_distribution<T> normal;
  std::vector<T> values;
  while (values.size() < count) {
    switch (which) {
      case kind::any_bits: values.push_back(any_finite<T>(random)); break;
      case kind::gradients: values.push_back(normal(random) * T(1e-3)); break;
      case kind::limb_edges: {
        const int limb = static_cast<int>(random() % static_cast<unsigned>(whole_limbs<T>));
        const T edge = std::ldexp(limb_unit<T>(limb), static_cast<int>(random() % 3));
        const T value = random() % 2 == 0 ? edge : std::ldexp(limb_unit<T>(limb), 62 - static_cast<int>(random() % 2));
        values.push_back(random() % 2 == 0 ? value : -value);
        break;
      }
      case kind::cancelling: {
        const T value = any_finite<T>(random);
        values.push_back(value);
        values.push_back(random() % 8 == 0 ? std::nextafter(-value, T{0}) : -value);
        break;
      }
      case kind::subnormals: {
        const auto sign = static_cast<pattern<T>>(random() % 2) << (sizeof(T) * 8 - 1);
        const int fraction_bits = limits<T>::digits - 1;
        const int dropped_bits = static_cast<int>(sizeof(T) * 8) - fraction_bits - 1;
        const auto magnitude = static_cast<pattern<T>>(random()) >> dropped_bits;
        values.push_back(std::bit_cast<T>(static_cast<pattern<T>>(sign | magnitude)));
        break;
      }
    }
  }
  return values;
}

/// Sums random parts of `values`, and merges the parts in random order.
template <class T>
exact_sum<T> sum_of_random_parts(const std::vector<T>& values, std::mt19937_64& random) {
  std::vector<exact_sum<T>> parts(1 + random() % 7);
  for (const T value : values) parts[random() % parts.size()].add(value);
  while (parts.size() > 1) {
    std::swap(parts[random() % parts.size()], parts.back());
    const exact_sum<T> last = parts.back();
    parts.pop_back();
    exact_sum<T>& other = parts[random() % parts.size()];
    if (random() % 2 == 0) {
      other += last;
    } else {
      other = std::plus<>{}(last, other);
    }
  }
  return parts.front();
}

constexpr float cancelled() {
  exact_sum<float> sum(1e30F);
  sum.add(1.0F);
  sum += exact_sum<float>(-1e30F);
  return sum.value();
}
static_assert(cancelled() == 1.0F);
static_assert((exact_sum<double>(0x1p1000) + exact_sum<double>(0x1p-1074) + exact_sum<double>(-0x1p1000)).value() ==
              0x1p-1074);
static_assert(exact_sum<float>::max_contributions == std::uint64_t{1} << 38);
static_assert(std::is_nothrow_default_constructible_v<exact_sum<float>>);
static_assert(!std::is_convertible_v<float, exact_sum<float>>);

}  // namespace

TEMPLATE_TEST_CASE("exact_sum: the sum of one value is that value", "[exact_sum]", float, double) {
  using T = TestType;
  std::vector<T> values{
      T(0), -T(0), limits<T>::max(), limits<T>::lowest(), limits<T>::infinity(), -limits<T>::infinity()};
  for (int exponent = limits<T>::min_exponent - limits<T>::digits; exponent < limits<T>::max_exponent; ++exponent) {
    const T power = std::ldexp(T{1}, exponent);
    for (const T value : {power, -power, std::nextafter(power, T{0}), std::nextafter(power, limits<T>::max())}) {
      values.push_back(value);
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i != 20000; ++i) values.push_back(any_finite<T>(random));
  const auto wrong = std::find_if(values.begin(), values.end(),
                                  [](T value) { return bits(exact_sum<T>(value).value()) != bits(value); });
  REQUIRE(wrong == values.end());
}

TEMPLATE_TEST_CASE("exact_sum: any order and split has the same bytes and the rounded value", "[exact_sum]", float,
                   double) {
  using T = TestType;
  std::mt19937_64 random(2);
  for (const kind which : all_kinds) {
    for (int trial = 0; trial != 120; ++trial) {
      std::vector<T> values = contributions<T>(which, random() % 60, random);
      const exact_sum<T> sum = sum_of(values);
      CAPTURE(static_cast<int>(which), trial, values);
      const T expected = counted(values);
      REQUIRE(sum.value() == expected);
      for (int again = 0; again != 5; ++again) {
        std::shuffle(values.begin(), values.end(), random);
        REQUIRE(bytes(sum_of(values)) == bytes(sum));
        REQUIRE(bytes(sum_of_random_parts(values, random)) == bytes(sum));
        REQUIRE(sum_of_random_parts(values, random) == sum);
      }
    }
  }
}

TEMPLATE_TEST_CASE("exact_sum: every prefix of an ill-conditioned sum is rounded correctly", "[exact_sum]", float,
                   double) {
  using T = TestType;
  std::mt19937_64 random(3);
  std::vector<T> values = contributions<T>(kind::cancelling, 150, random);
  std::shuffle(values.begin(), values.end(), random);
  exact_sum<T> sum;
  counted_sum<T> expected;
  for (const T value : values) {
    sum.add(value);
    expected.add(value);
    REQUIRE(sum.value() == expected.value());
  }
}

TEMPLATE_TEST_CASE("exact_sum: small values remain when large values cancel", "[exact_sum]", float, double) {
  using T = TestType;
  REQUIRE(sum_of<T>({T(1e30), T(1), T(-1e30)}).value() == T(1));
  REQUIRE(sum_of<T>({limits<T>::max(), limits<T>::denorm_min(), limits<T>::lowest()}).value() ==
          limits<T>::denorm_min());
  // Intermediate sums exceed the largest finite value.
  REQUIRE(sum_of<T>({limits<T>::max(), limits<T>::max(), T(-3), limits<T>::lowest(), limits<T>::lowest()}).value() ==
          T(-3));
}

TEMPLATE_TEST_CASE("exact_sum: a carry passes through all limbs in both directions", "[exact_sum]", float, double) {
  using T = TestType;
  for (const T sign : {T(1), T(-1)}) {
    // All digits are 2^63 - 1: with one unit more, each of them wraps around.
    std::vector<T> values;
    for (int limb = 0; limb != whole_limbs<T>; ++limb) {
      values.push_back(sign * std::ldexp(limb_unit<T>(limb), limb == 0 ? 59 : 63));
      values.push_back(-sign * limb_unit<T>(limb));
    }
    const exact_sum<T> brim = sum_of(values);
    for (const T drop : {limb_unit<T>(0), 2 * limb_unit<T>(0), std::ldexp(limb_unit<T>(0), 40), limb_unit<T>(1)}) {
      exact_sum<T> added = brim;
      added.add(sign * drop);
      values.push_back(sign * drop);
      REQUIRE(added.value() == counted(values));
      REQUIRE(bytes(brim + exact_sum<T>(sign * drop)) == bytes(added));
      REQUIRE(bytes(exact_sum<T>(sign * drop) + brim) == bytes(added));
      added.add(-sign * drop);
      REQUIRE(bytes(added) == bytes(brim));
      values.pop_back();
    }
    REQUIRE((brim + brim).value() == 2 * brim.value());
  }
}

TEMPLATE_TEST_CASE("exact_sum: the headroom holds 2^headroom_bits of the largest value", "[exact_sum]", float, double) {
  using T = TestType;
  for (const T sign : {T(1), T(-1)}) {
    exact_sum<T> large(sign * limits<T>::max());
    exact_sum<T> opposite(-sign * limits<T>::max());
    for (int doubling = 0; doubling != exact_sum<T>::headroom_bits; ++doubling) {
      large += large;
      opposite += opposite;
      REQUIRE(large.value() == sign * limits<T>::infinity());
      REQUIRE((large + exact_sum<T>(T(1)) + opposite).value() == T(1));
    }
  }
}

TEMPLATE_TEST_CASE("exact_sum: rounds to nearest, ties to even, once", "[exact_sum]", float, double) {
  using T = TestType;
  const T big = std::ldexp(T{1}, limits<T>::digits);  // above this value, odd integers are ties
  const T tiny = limits<T>::denorm_min();
  for (const T sign : {T(1), T(-1)}) {
    const auto rounded = [&](std::vector<T> values) {
      for (T& value : values) value *= sign;
      REQUIRE(sum_of(values).value() == counted(values));
      return sign * sum_of(values).value();
    };
    REQUIRE(rounded({big, 1}) == big);
    REQUIRE(rounded({big, 3}) == big + 4);
    REQUIRE(rounded({big, 1, tiny}) == big + 2);
    REQUIRE(rounded({big, 1, -tiny}) == big);
    REQUIRE(rounded({big, 3, -tiny}) == big + 2);
    REQUIRE(rounded({big, T(0.5), T(0.5)}) == big);
    REQUIRE(rounded({2 * big, -1}) == 2 * big);
    REQUIRE(rounded({2 * big, -1, -1}) == 2 * big - 2);
    // A carry out of the significand.
    REQUIRE(rounded({2 * big - 2, 1}) == 2 * big);
    // At the upper end: half a unit beyond the largest value is a tie, which rounds to infinity.
    const T half_unit = std::ldexp(T{1}, limits<T>::max_exponent - limits<T>::digits - 1);
    REQUIRE(rounded({limits<T>::max(), half_unit}) == limits<T>::infinity());
    REQUIRE(rounded({limits<T>::max(), half_unit, -tiny}) == limits<T>::max());
    // At the lower end everything is exact.
    REQUIRE(rounded({limits<T>::min(), -tiny}) == limits<T>::min() - tiny);
    REQUIRE(rounded({limits<T>::min() - tiny, tiny}) == limits<T>::min());
  }
}

TEMPLATE_TEST_CASE("exact_sum: the lowest bit decides ties at any distance", "[exact_sum]", float, double) {
  using T = TestType;
  std::mt19937_64 random(8);
  const int lowest = limits<T>::min_exponent - limits<T>::digits;
  for (int exponent = lowest; exponent < limits<T>::max_exponent; ++exponent) {
    const auto power = [&](int below) { return std::ldexp(T{1}, std::max(exponent - below, lowest)); };
    const int half = limits<T>::digits;  // places below the highest
    for (const int distance : {1, 2 + static_cast<int>(random() % 30), 20 + static_cast<int>(random() % 120)}) {
      const T sign = random() % 2 == 0 ? T(1) : T(-1);
      const T decisive = random() % 2 == 0 ? power(half + distance) : -power(half + distance);
      const std::vector<T> tie{sign * power(0), sign * power(half), decisive};
      const std::vector<T> difference{sign * power(0), -sign * power(half + distance)};
      CAPTURE(tie, difference);
      REQUIRE(sum_of(tie).value() == counted(tie));
      REQUIRE(sum_of(difference).value() == counted(difference));
    }
  }
}

TEMPLATE_TEST_CASE("exact_sum: NaN and infinities do not depend on order", "[exact_sum]", float, double) {
  using T = TestType;
  const T infinity = limits<T>::infinity();
  const T nan = limits<T>::quiet_NaN();
  const pattern<T> canonical = bits(limits<T>::quiet_NaN());
  struct example {
    std::vector<T> values;
    pattern<T> expected;
  };
  const std::vector<example> examples{
      {{infinity, T(1)}, bits(infinity)},
      {{-infinity, limits<T>::max(), limits<T>::max()}, bits(-infinity)},
      {{infinity, infinity, T(-2)}, bits(infinity)},
      {{infinity, -infinity, T(1)}, canonical},
      {{nan, T(1), T(-1)}, canonical},
      {{-nan, infinity, T(0)}, canonical},
      {{limits<T>::signaling_NaN(), -infinity, T(2)}, canonical},
  };
  std::mt19937_64 random(4);
  for (const example& each : examples) {
    std::vector<T> values = each.values;
    const exact_sum<T> sum = sum_of(values);
    for (int trial = 0; trial != 40; ++trial) {
      std::shuffle(values.begin(), values.end(), random);
      REQUIRE(bits(sum_of(values).value()) == each.expected);
      const exact_sum<T> split = sum_of_random_parts(values, random);
      REQUIRE(bits(split.value()) == each.expected);
      REQUIRE(bytes(split) == bytes(sum));
    }
  }
}

TEMPLATE_TEST_CASE("exact_sum: a zero is negative only if all contributions were -0", "[exact_sum]", float, double) {
  using T = TestType;
  const auto sign = [](const std::vector<T>& values) { return std::signbit(sum_of(values).value()); };
  REQUIRE_FALSE(sign({}));
  REQUIRE_FALSE(sign({T(0)}));
  REQUIRE(sign({-T(0)}));
  REQUIRE(sign({-T(0), -T(0)}));
  REQUIRE_FALSE(sign({-T(0), T(0)}));
  REQUIRE_FALSE(sign({T(0), -T(0)}));
  REQUIRE_FALSE(sign({-T(0), T(3), T(-3)}));
  REQUIRE(std::signbit((exact_sum<T>(-T(0)) + exact_sum<T>()).value()));
  REQUIRE_FALSE(std::signbit((exact_sum<T>(-T(0)) + exact_sum<T>(T(0))).value()));
}

TEMPLATE_TEST_CASE("exact_sum: the empty sum is the identity, and all its bytes are zero", "[exact_sum]", float,
                   double) {
  using T = TestType;
  const exact_sum<T> empty;
  REQUIRE(std::ranges::all_of(bytes(empty), [](unsigned char byte) { return byte == 0; }));
  REQUIRE(bits(empty.value()) == 0);
  std::mt19937_64 random(5);
  for (int trial = 0; trial != 100; ++trial) {
    const exact_sum<T> sum(any_finite<T>(random));
    REQUIRE(sum + empty == sum);
    REQUIRE(empty + sum == sum);
  }
}

TEMPLATE_TEST_CASE("exact_sum: merging is associative and commutative, also with itself", "[exact_sum]", float,
                   double) {
  using T = TestType;
  std::mt19937_64 random(6);
  for (int trial = 0; trial != 300; ++trial) {
    const kind which = all_kinds[random() % all_kinds.size()];
    const exact_sum<T> a = sum_of(contributions<T>(which, random() % 9, random));
    const exact_sum<T> b = sum_of(contributions<T>(which, random() % 9, random));
    const exact_sum<T> c = sum_of(contributions<T>(kind::any_bits, random() % 9, random));
    REQUIRE(a + b == b + a);
    REQUIRE((a + b) + c == a + (b + c));
    exact_sum<T> twice = a;
    twice += twice;
    REQUIRE(twice == a + a);
  }
}

TEMPLATE_TEST_CASE("exact_sum: batch functions give the results of single functions", "[exact_sum]", float, double) {
  using T = TestType;
  std::mt19937_64 random(7);
  constexpr std::size_t count = 257;
  std::vector<exact_sum<T>> batch(count);
  std::vector<exact_sum<T>> single(count);
  for (int round = 0; round != 4; ++round) {
    std::vector<T> values = contributions<T>(kind::any_bits, count, random);
    values[static_cast<std::size_t>(round)] = limits<T>::infinity();
    exact_sum<T>::add(batch, values);
    for (std::size_t i = 0; i != count; ++i) single[i].add(values[i]);
  }
  REQUIRE(batch == single);
  std::vector<T> out(count);
  exact_sum<T>::value(batch, out);
  for (std::size_t i = 0; i != count; ++i) REQUIRE(bits(out[i]) == bits(single[i].value()));

  exact_sum<T>::add({}, {});
  exact_sum<T>::value({}, {});
}

#if HOCKET_HAS_EXCEPTIONS
TEST_CASE("exact_sum: batches of different sizes are rejected before anything is changed", "[exact_sum]") {
  std::vector<exact_sum<float>> sums(3);
  std::vector<float> values{1, 2};
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const hocket::error& caught) {
      REQUIRE(std::string_view(caught.what()).find("3 sums but 2 values") != std::string_view::npos);
      return caught.code();
    }
    return std::error_code{};
  };
  REQUIRE(code_of([&] { exact_sum<float>::add(sums, values); }) == hocket::errc::invalid_argument);
  REQUIRE(code_of([&] { exact_sum<float>::value(sums, values); }) == hocket::errc::invalid_argument);
  REQUIRE(sums == std::vector<exact_sum<float>>(3));
  REQUIRE(values == std::vector<float>{1, 2});
}
#endif
