// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A floating-point sum that does not depend on order: every addition is exact, and one rounding happens at the end.
///
/// Floating-point addition is not associative, so a sum over ranks changes its last bits with the algorithm, the split
/// and the number of ranks. `exact_sum<T>` holds the sum of any finite values of T as one wide fixed-point number: a
/// contribution is added without loss, two sums merge without loss, and `value()` rounds once, to nearest, ties to
/// even. Whatever the order and grouping, the result has the same bits, and it is the correctly rounded sum.
///
///     std::vector<exact_sum<float>> sums(gradient.size());
///     exact_sum<float>::add(sums, gradient);                     // as often as there are contributions
///     all_reduce(comm, in_place(sums), std::plus<>{});           // any algorithm, any number of ranks
///     exact_sum<float>::value(sums, gradient);                   // one rounding
///
/// Half, bfloat16 and float8 convert to float exactly: add them as float.
///
/// **Representation.** Limb i is a signed digit in [-2^63, 2^63) of weight 2^(64 i); the lowest four bits of limb 0 are
/// flags, and the bit above them is the smallest subnormal. Signed digits have exactly one representation per number,
/// so equal sums are equal bit for bit, and small values of changing sign do not carry through all limbs, as they
/// would in two's complement. All bits zero is the empty sum. The bytes depend on the byte order of the machine.
///
/// **Cost.** 40 bytes for a float, 272 for a double. From cache, on a core of 2021: a float takes 3 ns to add, 3 ns to
/// merge (6 for random magnitudes) and 9 to 16 to round; a double takes 4, 45 to 75 and 70 to 90.
/// Nothing here is floating-point arithmetic: rounding modes and flush-to-zero have no influence.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/operation/apply.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

// If the compiler of CUDA 13.0 inlines the construction of two sums and the value of a third in one function, it places
// the third sum's limbs and the digits derived from them in the same memory: the value is then zero.
#if defined(__CUDA_ARCH__)
#define HOCKET_DETAIL_APART_ON_DEVICE HOCKET_NO_INLINE
#else
#define HOCKET_DETAIL_APART_ON_DEVICE
#endif

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Returns the number of zeros before the highest set bit of `value`, which must not be 0.
HOCKET_HOST_DEVICE constexpr int leading_zeros(std::uint64_t value) noexcept {
#if defined(__CUDA_ARCH__)
  return __clzll(static_cast<long long>(value));
#else
  return std::countl_zero(value);
#endif
}

/// Sets `sum` to a + b modulo 2^64. Returns true if that is not a + b.
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr bool add_overflows(std::int64_t a, std::int64_t b,
                                                                     std::int64_t& sum) noexcept {
#if defined(__CUDA_ARCH__)
  sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  return ((a ^ sum) & (b ^ sum)) < 0;
#else
  return __builtin_add_overflow(a, b, &sum);
#endif
}

}  // namespace detail

/// The exact sum of any number (up to `max_contributions`) of values of T, which is float or double.
///
/// Trivially copyable; merging is associative and commutative, so it is an element type for any all_reduce or
/// reduce_scatter with `std::plus<>`. The empty sum is the identity.
///
/// Special values, which do not depend on the order either:
/// - a NaN, or infinities of both signs, give the quiet NaN; infinities of one sign give that infinity;
/// - a finite sum that rounds beyond the largest finite value gives an infinity, as IEEE 754 requires; a sum that
///   exceeds that value only temporarily is exact;
/// - an exact zero gives +0, unless there were contributions and all of them were -0. The sum of one value is therefore
///   that value, bit for bit (except NaN payloads).
///
/// Threads: as for a built-in number; distinct objects are independent.
template <class T>
class exact_sum {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>,
                "hocket::exact_sum<T>: T must be float or double; add narrower types as float, which is exact");
  static_assert(std::numeric_limits<T>::is_iec559 && std::endian::native == std::endian::little,
                "hocket::exact_sum<T>: needs IEEE 754 formats on a little-endian machine");

  using word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using signed_word = std::make_signed_t<word>;
  using limb = std::uint64_t;
  using signed_limb = std::int64_t;

  static constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
  static constexpr int sign_bit = static_cast<int>(sizeof(T)) * 8 - 1;
  static constexpr unsigned special_exponent = 2U * std::numeric_limits<T>::max_exponent - 1;
  static constexpr int flag_bits = 4;

  /// Bits of the largest finite magnitude, in units of the smallest subnormal.
  static constexpr int magnitude_bits = std::numeric_limits<T>::digits + static_cast<int>(special_exponent) - 2;
  static constexpr int least_headroom_bits = 32;
  static constexpr int used_bits = flag_bits + magnitude_bits + 1;
  static constexpr std::size_t limb_count = (used_bits + least_headroom_bits + 63) / 64;

 public:
  using value_type = T;

  /// 2^headroom_bits contributions of the largest finite magnitude still fit: 2^38 floats, 2^73 doubles.
  static constexpr int headroom_bits = static_cast<int>(limb_count) * 64 - used_bits;

  /// Sums of more contributions than this, counted over all ranks, are not supported and not detected.
  static constexpr std::uint64_t max_contributions = std::uint64_t{1} << (headroom_bits < 63 ? headroom_bits : 63);

  /// The empty sum. Its value is +0.
  constexpr exact_sum() noexcept = default;

  /// The sum of one contribution.
  HOCKET_HOST_DEVICE HOCKET_DETAIL_APART_ON_DEVICE constexpr explicit exact_sum(T contribution) noexcept {
    add(contribution);
  }

  /// Adds one contribution, exactly.
  HOCKET_HOST_DEVICE constexpr void add(T contribution) noexcept {
    const auto bits = __builtin_bit_cast(signed_word, contribution);
    const auto magnitude = static_cast<word>(bits) & ~(word{1} << sign_bit);
    const auto exponent = static_cast<unsigned>(magnitude >> fraction_bits);
    if (exponent == special_exponent) [[unlikely]] {
      add_special(bits);
      return;
    }
    // Subnormals have the weight of exponent 1. Subtracting the shift from the pattern leaves the hidden bit in place.
    const unsigned shift = exponent - 1U + static_cast<unsigned>(exponent == 0U);
    const auto significand = static_cast<signed_limb>(magnitude - (static_cast<word>(shift) << fraction_bits));
    const signed_limb sign = static_cast<signed_limb>(bits) >> 63;
    const signed_limb scaled = ((significand << flag_bits) ^ sign) - sign;

    limbs_[0] |= static_cast<word>(bits) == word{1} << sign_bit ? negative_zero : ordinary;
    const std::size_t index = shift / 64;
    const unsigned offset = shift % 64;
    const limb low = static_cast<limb>(scaled) << offset;
    const signed_limb high = (scaled >> 1) >> (63U - offset);
    const limb biased = (limbs_[index] ^ top_bit) + low;
    limbs_[index] = biased ^ top_bit;
    const signed_limb addend = high + static_cast<signed_limb>(biased < low);
    signed_limb next = 0;
    if (detail::add_overflows(static_cast<signed_limb>(limbs_[index + 1]), addend, next)) [[unlikely]] {
      carry_into(index + 2, addend < 0 ? -1 : 1);
    }
    limbs_[index + 1] = static_cast<limb>(next);
  }

  /// Adds all that `other` holds, exactly.
  HOCKET_HOST_DEVICE constexpr exact_sum& operator+=(const exact_sum& other) noexcept {
    if constexpr (limb_count == 5) {
      if (merge_short(*this, other, *this)) [[likely]]
        return *this;
    }
    return *this = merge(*this, other);
  }

  HOCKET_HOST_DEVICE HOCKET_DETAIL_APART_ON_DEVICE friend constexpr exact_sum operator+(
      const exact_sum& left, const exact_sum& right) noexcept {
    if constexpr (limb_count == 5) {
      exact_sum sum;
      if (merge_short(left, right, sum)) [[likely]]
        return sum;
      // Copied limb by limb, so that the result stays in registers and the copies around it cost nothing.
      const exact_sum careful = merge(left, right);
      sum.limbs_[0] = careful.limbs_[0];
      sum.limbs_[1] = careful.limbs_[1];
      sum.limbs_[2] = careful.limbs_[2];
      sum.limbs_[3] = careful.limbs_[3];
      sum.limbs_[4] = careful.limbs_[4];
      return sum;
    } else {
      return merge(left, right);
    }
  }

  /// The sum, rounded once: to nearest, ties to even.
  HOCKET_HOST_DEVICE HOCKET_DETAIL_APART_ON_DEVICE constexpr T value() const noexcept {
    const limb flags = limbs_[0] & flag_mask;
    const bool to_positive = (flags & positive_infinity) != 0;
    const bool to_negative = (flags & negative_infinity) != 0;
    if (to_positive || to_negative) [[unlikely]] {
      if (to_positive && to_negative) return detail::quiet_nan_of<T>;
      return assemble(to_negative, infinity_bits);
    }
    limb magnitude[limb_count + 1] = {};
    const bool negative = absolute(magnitude);
    std::size_t top = 0;
    for (std::size_t i = 1; i <= limb_count; ++i) top = magnitude[i] != 0 ? i : top;
    if (top == 0) return assemble((flags & (negative_zero | ordinary)) == negative_zero, 0);
    return assemble(negative, round(magnitude, top));
  }

  /// True if both have the same bytes: the same exact sum of the finite contributions, and the same kinds of
  /// contributions (special values, -0, none at all). The order in which they were formed does not matter.
  friend constexpr bool operator==(const exact_sum&, const exact_sum&) noexcept = default;

  /// Adds `values[i]` to `into[i]` for every i.
  ///
  /// Errors: `errc::invalid_argument` if the sizes, which count elements, differ; nothing was added.
  static constexpr void add(std::span<exact_sum> into, std::span<const T> values) {
    if (into.size() != values.size()) raise_sizes_differ("exact_sum::add", into.size(), values.size());
    exact_sum* const sums = into.data();
    const T* const contributions = values.data();
    for (std::size_t i = 0; i != values.size(); ++i) sums[i].add(contributions[i]);
  }

  /// Stores the rounded sum of `sums[i]` in `out[i]` for every i.
  ///
  /// Errors: `errc::invalid_argument` if the sizes, which count elements, differ; nothing was written.
  static constexpr void value(std::span<const exact_sum> sums, std::span<T> out) {
    if (sums.size() != out.size()) raise_sizes_differ("exact_sum::value", sums.size(), out.size());
    for (std::size_t i = 0; i != out.size(); ++i) out[i] = sums[i].value();
  }

 private:
  static constexpr limb top_bit = limb{1} << 63;

  // Flags merge by OR. A NaN counts as both infinities, because the result is the same from then on.
  static constexpr limb positive_infinity = 1;
  static constexpr limb negative_infinity = 2;
  static constexpr limb negative_zero = 4;  ///< a contribution was -0
  static constexpr limb ordinary = 8;       ///< a finite contribution was not -0
  static constexpr limb flag_mask = (limb{1} << flag_bits) - 1;

  static constexpr word infinity_bits = static_cast<word>(special_exponent) << fraction_bits;

  static_assert(headroom_bits >= least_headroom_bits);
  // The highest bit that `add` touches is in the last limb or below, and a shifted significand spans two limbs.
  static_assert((special_exponent - 2) / 64 + 1 < limb_count);
  static_assert(fraction_bits + 1 + flag_bits < 63);

  [[noreturn]] static void raise_sizes_differ(const char* operation, std::size_t sums, std::size_t values) {
    raise(errc::invalid_argument,
          std::to_string(sums) + " sums but " + std::to_string(values) + " values: pass the same number of both",
          {.operation = operation});
  }

  HOCKET_HOST_DEVICE constexpr void add_special(signed_word bits) noexcept {
    const bool is_nan = (static_cast<word>(bits) & ((word{1} << fraction_bits) - 1)) != 0;
    limbs_[0] |= is_nan ? positive_infinity | negative_infinity : bits < 0 ? negative_infinity : positive_infinity;
  }

  HOCKET_HOST_DEVICE constexpr void carry_into(std::size_t index, signed_limb carry) noexcept {
    for (; index != limb_count; ++index) {
      signed_limb digit = 0;
      const bool again = detail::add_overflows(static_cast<signed_limb>(limbs_[index]), carry, digit);
      limbs_[index] = static_cast<limb>(digit);
      if (!again) return;
    }
  }

  /// Adds two digits; returns the lower part, and adds the carry into the next digit, -1, 0 or 1, to `carry`.
  HOCKET_HOST_DEVICE static constexpr limb add_digits(limb left, limb right, signed_limb& carry) noexcept {
    const limb biased = (left ^ top_bit) + right;
    carry += (static_cast<signed_limb>(right) >> 63) + static_cast<signed_limb>(biased < right);
    return biased ^ top_bit;
  }

  /// Merges with carries into every limb, at a cost that does not depend on the values.
  HOCKET_HOST_DEVICE HOCKET_NO_INLINE static constexpr exact_sum merge(const exact_sum& left,
                                                                       const exact_sum& right) noexcept {
    const limb flags = right.limbs_[0] & flag_mask;
    exact_sum sum;
    signed_limb carry = 0;
    for (std::size_t i = 0; i != limb_count; ++i) {
      signed_limb next_carry = 0;
      const limb digit = add_digits(left.limbs_[i], i == 0 ? right.limbs_[0] - flags : right.limbs_[i], next_carry);
      sum.limbs_[i] = add_digits(digit, static_cast<limb>(carry), next_carry);
      carry = next_carry;
    }
    sum.limbs_[0] |= flags;
    return sum;
  }

  /// The common case of five limbs: carries from limb 1 into 2 and from 3 into 4 only. Values of magnitude 2^-21 to 2
  /// lie across limbs 1 and 2, so that carry is common. The others need magnitudes near 2^-85 or 2^43.
  /// Returns false, with `sum` untouched, if one of those occurs. `sum` may be `left`.
  HOCKET_HOST_DEVICE static constexpr bool merge_short(const exact_sum& left, const exact_sum& right,
                                                       exact_sum& sum) noexcept {
    const limb flags = right.limbs_[0] & flag_mask;
    signed_limb digit0 = 0;
    signed_limb digit2 = 0;
    signed_limb carry2 = 0;
    signed_limb carry4 = 0;
    const limb digit1 = add_digits(left.limbs_[1], right.limbs_[1], carry2);
    const limb digit3 = add_digits(left.limbs_[3], right.limbs_[3], carry4);
    bool overflow = detail::add_overflows(static_cast<signed_limb>(left.limbs_[0]),
                                          static_cast<signed_limb>(right.limbs_[0] - flags), digit0);
    overflow |= detail::add_overflows(static_cast<signed_limb>(left.limbs_[2]),
                                      static_cast<signed_limb>(right.limbs_[2]), digit2);
    overflow |= detail::add_overflows(digit2, carry2, digit2);
    if (overflow) [[unlikely]]
      return false;
    sum.limbs_[4] = left.limbs_[4] + right.limbs_[4] + static_cast<limb>(carry4);
    sum.limbs_[0] = static_cast<limb>(digit0) | flags;
    sum.limbs_[1] = digit1;
    sum.limbs_[2] = static_cast<limb>(digit2);
    sum.limbs_[3] = digit3;
    return true;
  }

  /// Writes the absolute value, flags left out, as ordinary unsigned limbs, from magnitude[1] on; returns the sign.
  /// Has no branches on signs, because the signs of sums are unpredictable.
  HOCKET_HOST_DEVICE constexpr bool absolute(limb (&magnitude)[limb_count + 1]) const noexcept {
    limb below_zero = 0;  // all ones if what lies below the current digit is negative
    for (std::size_t i = 0; i != limb_count; ++i) {
      const limb digit = i == 0 ? limbs_[0] & ~flag_mask : limbs_[i];
      magnitude[i + 1] = digit + below_zero;
      below_zero = static_cast<limb>(static_cast<signed_limb>(digit | magnitude[i + 1]) >> 63);
    }
    const limb sign = below_zero;
    limb carry = sign & 1;
    for (std::size_t i = 1; i <= limb_count; ++i) {
      magnitude[i] = (magnitude[i] ^ sign) + carry;
      carry = static_cast<limb>(magnitude[i] < carry);
    }
    return sign != 0;
  }

  /// Returns the bits, without the sign, of the value of T nearest to the magnitude in limbs 1 to `top`, which is not
  /// zero. Limb 0 is zero.
  HOCKET_HOST_DEVICE static constexpr word round(const limb (&magnitude)[limb_count + 1], std::size_t top) noexcept {
    const int zeros = detail::leading_zeros(magnitude[top]);
    const int highest = static_cast<int>(top) * 64 - 1 - zeros - flag_bits;  // in units of the smallest subnormal
    if (highest < fraction_bits) return static_cast<word>(magnitude[1] >> flag_bits);
    if (highest >= magnitude_bits) return infinity_bits;

    constexpr int kept = fraction_bits + 1;
    const limb leading = (magnitude[top] << zeros) | ((magnitude[top - 1] >> 1) >> (63 - zeros));
    const limb significand = leading >> (64 - kept);
    const limb rest = leading << kept;
    limb up = rest >> 63;
    if (rest == top_bit) [[unlikely]] {
      limb beyond = magnitude[top - 1] << zeros;
      for (std::size_t i = 1; i + 1 < top; ++i) beyond |= magnitude[i];
      up = beyond != 0 ? 1 : significand & 1;
    }
    // The hidden bit adds one to the exponent, and so does a carry out of the significand, possibly up to infinity.
    return static_cast<word>((static_cast<limb>(highest - fraction_bits) << fraction_bits) + significand + up);
  }

  HOCKET_HOST_DEVICE static constexpr T assemble(bool negative, word magnitude) noexcept {
    return __builtin_bit_cast(T, static_cast<word>(magnitude | (static_cast<word>(negative) << sign_bit)));
  }

  limb limbs_[limb_count] = {};
};

static_assert(sizeof(exact_sum<float>) == 40 && exact_sum<float>::headroom_bits == 38);
static_assert(sizeof(exact_sum<double>) == 272 && exact_sum<double>::headroom_bits == 73);
static_assert(std::is_trivially_copyable_v<exact_sum<float>> && std::is_trivially_copyable_v<exact_sum<double>>);

HOCKET_END_NAMESPACE

#undef HOCKET_DETAIL_APART_ON_DEVICE
