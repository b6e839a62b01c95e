// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loops of vector_kernel.hpp for one level of instructions. That header includes this file once for each level,
// with these macros:
//
//   HOCKET_DETAIL_LEVEL   the namespace: sse2, avx2 or avx512
//   HOCKET_DETAIL_WIDTH   bytes of a vector
//   HOCKET_DETAIL_TARGET  the attribute that allows the level's instructions
//   HOCKET_DETAIL_ANY     the constraint of an operand in any vector register
//   HOCKET_DETAIL_THREE   1 if instructions have three operands
//   HOCKET_DETAIL_F16C    1 if there are instructions that convert halves
//
// Attributes can't depend on template parameters, and a function is inlined only if its target is part of its caller's.
// So every function here has the attribute, and no function of the standard library is called.

#define HOCKET_DETAIL_INLINE HOCKET_DETAIL_TARGET HOCKET_ALWAYS_INLINE

HOCKET_BEGIN_NAMESPACE
namespace kernel::detail::HOCKET_DETAIL_LEVEL {

inline constexpr std::size_t width = HOCKET_DETAIL_WIDTH;

template <class Lane, std::size_t Bytes = width>
struct vector_type {
  typedef Lane type __attribute__((vector_size(Bytes)));  // NOLINT: `using` loses the attribute in templates
};
template <class Lane, std::size_t Bytes = width>
using vector = typename vector_type<Lane, Bytes>::type;

template <class Lane, std::size_t Bytes = width>
HOCKET_DETAIL_INLINE vector<Lane, Bytes> load(const std::byte* from) {
  vector<Lane, Bytes> result;
  __builtin_memcpy(&result, from, Bytes);
  return result;
}

template <class Lane, std::size_t Bytes = width>
HOCKET_DETAIL_INLINE void store(std::byte* to, vector<Lane, Bytes> value) {
  __builtin_memcpy(to, &value, Bytes);
}

// ---- operations on lanes -------------------------------------------------------------------------------------------

#if HOCKET_DETAIL_THREE
#define HOCKET_DETAIL_ARITHMETIC(instruction, a, b, result) \
  asm("v" instruction " {%2, %1, %0|%0, %1, %2}"            \
      : "=" HOCKET_DETAIL_ANY(result)                       \
      : HOCKET_DETAIL_ANY(a), HOCKET_DETAIL_ANY(b))
#else
#define HOCKET_DETAIL_ARITHMETIC(instruction, a, b, result) \
  asm(instruction " {%2, %0|%0, %2}" : "=" HOCKET_DETAIL_ANY(result) : "0"(a), HOCKET_DETAIL_ANY(b))
#endif

/// a + b or a * b of floating-point lanes. If both are NaNs, the processor returns the first one; compilers may swap
/// the operands of an expression, and then the payload would depend on the level.
template <vector_function Function, class Lane>
HOCKET_DETAIL_INLINE vector<Lane> rounded(vector<Lane> a, vector<Lane> b) {
  vector<Lane> result;
  if constexpr (Function == vector_function::plus && sizeof(Lane) == 4) {
    HOCKET_DETAIL_ARITHMETIC("addps", (a), (b), (result));
  } else if constexpr (Function == vector_function::plus) {
    HOCKET_DETAIL_ARITHMETIC("addpd", (a), (b), (result));
  } else if constexpr (sizeof(Lane) == 4) {
    HOCKET_DETAIL_ARITHMETIC("mulps", (a), (b), (result));
  } else {
    HOCKET_DETAIL_ARITHMETIC("mulpd", (a), (b), (result));
  }
  return result;
}

/// True if a lane of `a` or `b` is a NaN.
HOCKET_DETAIL_INLINE bool has_nan(vector<float> a, vector<float> b) {
#if HOCKET_DETAIL_WIDTH == 64
  unsigned short nans = 0;
  asm("vcmpps {$3, %2, %1, %0|%0, %1, %2, 3}" : "=k"(nans) : HOCKET_DETAIL_ANY(a), HOCKET_DETAIL_ANY(b));
#else
  vector<float> unordered;
  int nans = 0;
  HOCKET_DETAIL_ARITHMETIC("cmpunordps", (a), (b), (unordered));
#if HOCKET_DETAIL_THREE
  asm("vmovmskps {%1, %0|%0, %1}" : "=r"(nans) : HOCKET_DETAIL_ANY(unordered));
#else
  asm("movmskps {%1, %0|%0, %1}" : "=r"(nans) : HOCKET_DETAIL_ANY(unordered));
#endif
#endif
  return nans != 0;
}

/// A word per lane: negative if `a` or `b` is a NaN there. Compilers that assume that there are no NaNs would remove a
/// comparison of values.
template <class Lane>
HOCKET_DETAIL_INLINE vector<hocket::detail::float_word<Lane>> are_unordered(vector<Lane> a, vector<Lane> b) {
  using words = vector<hocket::detail::float_word<Lane>>;
#if HOCKET_DETAIL_WIDTH == 64
  constexpr auto infinity = hocket::detail::infinity_word<Lane>, magnitude = hocket::detail::magnitude_mask<Lane>;
  return ((reinterpret_cast<words>(a) & magnitude) > infinity) | ((reinterpret_cast<words>(b) & magnitude) > infinity);
#else
  vector<Lane> unordered;
  if constexpr (sizeof(Lane) == 4) {
    HOCKET_DETAIL_ARITHMETIC("cmpunordps", (a), (b), (unordered));
  } else {
    HOCKET_DETAIL_ARITHMETIC("cmpunordpd", (a), (b), (unordered));
  }
  return reinterpret_cast<words>(unordered);
#endif
}

/// `smaller_or_larger` of operation/operations.hpp. Chooses between vectors of words, not of numbers: nvcc ends by a
/// segmentation fault if a mask of integers chooses between vectors of floating-point lanes.
template <bool Smaller, class Lane>
HOCKET_DETAIL_INLINE vector<Lane> chosen(vector<Lane> a, vector<Lane> b) {
  using word = hocket::detail::float_word<Lane>;
  const auto x = reinterpret_cast<vector<word>>(a), y = reinterpret_cast<vector<word>>(b);
  const vector<word> exceeds = (x > y) ^ (x & y);  // negative where a > b, as in core/float_bits.hpp
  constexpr word nan = __builtin_bit_cast(word, std::numeric_limits<Lane>::quiet_NaN());
  const vector<word> found = exceeds < 0 ? (Smaller ? y : x) : (Smaller ? x : y);
  return reinterpret_cast<vector<Lane>>(are_unordered<Lane>(a, b) < 0 ? nan + vector<word>{} : found);
}

#undef HOCKET_DETAIL_ARITHMETIC

template <vector_function Function, class Lane>
HOCKET_DETAIL_INLINE vector<Lane> apply(vector<Lane> a, vector<Lane> b) {
  constexpr bool is_floating = std::is_floating_point_v<Lane>;
  if constexpr (Function == vector_function::minimum || Function == vector_function::maximum) {
    constexpr bool smaller = Function == vector_function::minimum;
    if constexpr (is_floating) return chosen<smaller, Lane>(a, b);
    if constexpr (!is_floating) return (smaller ? b < a : a < b) ? b : a;
  } else if constexpr (is_floating) {
    return rounded<Function, Lane>(a, b);
  } else {
    if constexpr (Function == vector_function::plus) return a + b;
    if constexpr (Function == vector_function::multiplies) return a * b;
    if constexpr (Function == vector_function::bit_and) return a & b;
    if constexpr (Function == vector_function::bit_or) return a | b;
    if constexpr (Function == vector_function::bit_xor) return a ^ b;
  }
}

// ---- elements in memory, and the lanes in which they are combined ---------------------------------------------------

/// Elements that are combined as they are.
template <class Element>
struct elements {
  static constexpr std::size_t vectors_at_once = HOCKET_DETAIL_WIDTH == 16 ? 8 : 4;
  using lane = Element;
  vector<lane> value;

  HOCKET_DETAIL_INLINE static elements read(const std::byte* from) { return {load<lane>(from)}; }
  HOCKET_DETAIL_INLINE static void write(std::byte* to, elements from) { store<lane>(to, from.value); }
  template <vector_function Function>
  HOCKET_DETAIL_INLINE static elements combine(elements a, elements b) {
    return {apply<Function, lane>(a.value, b.value)};
  }
  /// Rounds to the type of the elements.
  HOCKET_DETAIL_INLINE static elements round(elements value) { return value; }
};

/// As many floats as a vector has elements of two bytes.
struct two_vectors {
  static constexpr std::size_t vectors_at_once = 2;
  vector<float> first, second;

  template <vector_function Function>
  HOCKET_DETAIL_INLINE static two_vectors combine(two_vectors a, two_vectors b) {
    return {apply<Function, float>(a.first, b.first), apply<Function, float>(a.second, b.second)};
  }
};

/// Half a vector: as many elements of two bytes as a vector has floats.
HOCKET_DETAIL_INLINE vector<std::uint16_t, width / 2> load_halves(const std::byte* from) {
  return load<std::uint16_t, width / 2>(from);
}
/// Stores the lower half of each lane.
HOCKET_DETAIL_INLINE void store_halves(std::byte* to, vector<std::uint32_t> value) {
  using halves = vector<std::uint16_t, width / 2>;
  store<std::uint16_t, width / 2>(to, __builtin_convertvector(value, halves));
}

/// `magnitude` are bits of floats without their signs.
HOCKET_DETAIL_INLINE vector<std::int32_t> are_nans(vector<std::int32_t> magnitude) {
  return magnitude > hocket::detail::float_infinity_bits;
}

/// `value`, with the bits `nan` for each NaN.
HOCKET_DETAIL_INLINE vector<float> with_nans(vector<float> value, std::int32_t nan) {
  const auto bits = reinterpret_cast<vector<std::int32_t>>(value);
  const vector<std::int32_t> nans = are_nans(bits & 0x7fffffff);
  return reinterpret_cast<vector<float>>(nans ? nan + vector<std::int32_t>{} : bits);
}

/// The same for two vectors. The branch is nearly always predicted, and replaces a third of the instructions.
HOCKET_DETAIL_INLINE two_vectors with_nans(two_vectors values, std::int32_t nan) {
  if (__builtin_expect(has_nan(values.first, values.second), false)) {
    values = {with_nans(values.first, nan), with_nans(values.second, nan)};
  }
  return values;
}

/// The elements at even places are in `first`, the others in `second`: so nothing has to be moved between lanes.
template <>
struct elements<bfloat16> : two_vectors {
  using word = vector<std::uint32_t>;

  elements() = default;
  HOCKET_DETAIL_INLINE elements(two_vectors from) : two_vectors(from) {}

  HOCKET_DETAIL_INLINE static elements read(const std::byte* from) {
    const word both = load<std::uint32_t>(from);
    return two_vectors{reinterpret_cast<vector<float>>(both << 16),
                       reinterpret_cast<vector<float>>(both & 0xffff0000U)};
  }
  HOCKET_DETAIL_INLINE static void write(std::byte* to, elements from) {
    const two_vectors values = with_nans(from, rounded_nan);
    store<std::uint32_t>(to, (rounded(values.first) >> 16) | (rounded(values.second) & 0xffff0000U));
  }

  HOCKET_DETAIL_INLINE static elements round(elements from) {
    const two_vectors values = with_nans(from, rounded_nan);
    return two_vectors{reinterpret_cast<vector<float>>(rounded(values.first) & 0xffff0000U),
                       reinterpret_cast<vector<float>>(rounded(values.second) & 0xffff0000U)};
  }

  /// As many elements as a vector has floats.
  HOCKET_DETAIL_INLINE static vector<float> decode(const std::byte* from) {
    return reinterpret_cast<vector<float>>(__builtin_convertvector(load_halves(from), word) << 16);
  }
  HOCKET_DETAIL_INLINE static void encode(std::byte* to, vector<float> value) {
    store_halves(to, rounded(with_nans(value, rounded_nan)) >> 16);
  }

 private:
  static constexpr std::int32_t rounded_nan = 0x7fff0000;  ///< becomes the bfloat16 0x7fff

  /// The bfloat16 is the upper half of each lane; see `hocket::detail::encode`.
  HOCKET_DETAIL_INLINE static word rounded(vector<float> value) {
    const auto bits = reinterpret_cast<word>(value);
    return bits + (((bits >> 16) & 1U) + 0x7fffU);
  }
};

#if HOCKET_DETAIL_F16C

template <>
struct elements<half> : two_vectors {
  elements() = default;
  HOCKET_DETAIL_INLINE elements(two_vectors from) : two_vectors(from) {}

  HOCKET_DETAIL_INLINE static elements read(const std::byte* from) {
    return two_vectors{decoded(load_halves(from)), decoded(load_halves(from + width / 2))};
  }
  HOCKET_DETAIL_INLINE static void write(std::byte* to, elements from) {
    const two_vectors values = with_nans(from, hocket::detail::float_nan_bits);
    store_bits(to, encoded(values.first));
    store_bits(to + width / 2, encoded(values.second));
  }
  HOCKET_DETAIL_INLINE static elements round(elements from) {
    return two_vectors{decoded(encoded(from.first)), decoded(encoded(from.second))};
  }

  /// The instructions keep the sign of a NaN and some bits of its payload, conversions of `half` do not.
  HOCKET_DETAIL_INLINE static vector<float> decode(const std::byte* from) {
    return with_nans(decoded(load_halves(from)), hocket::detail::float_nan_bits);
  }
  HOCKET_DETAIL_INLINE static void encode(std::byte* to, vector<float> value) {
    store_bits(to, encoded(with_nans(value, hocket::detail::float_nan_bits)));
  }

 private:
  using halves = vector<std::uint16_t, width / 2>;

  HOCKET_DETAIL_INLINE static vector<float> decoded(halves bits) {
    vector<float> result;
    asm("vcvtph2ps {%1, %0|%0, %1}" : "=" HOCKET_DETAIL_ANY(result) : HOCKET_DETAIL_ANY(bits));
    return result;
  }
  HOCKET_DETAIL_INLINE static halves encoded(vector<float> value) {
    halves result;
    asm("vcvtps2ph {$0, %1, %0|%0, %1, 0}" : "=" HOCKET_DETAIL_ANY(result) : HOCKET_DETAIL_ANY(value));
    return result;
  }
  HOCKET_DETAIL_INLINE static void store_bits(std::byte* to, halves bits) { store<std::uint16_t, width / 2>(to, bits); }
};

#else

/// Like bfloat16, with the arithmetic of `hocket::detail::encode` and `decode`.
template <>
struct elements<half> : two_vectors {
  static constexpr std::size_t vectors_at_once = 1;  // because the code is long
  using layout = hocket::detail::small_float_layout<hocket::detail::binary16>;
  using word = vector<std::uint32_t>;
  using signed_word = vector<std::int32_t>;

  elements() = default;
  HOCKET_DETAIL_INLINE elements(two_vectors from) : two_vectors(from) {}

  HOCKET_DETAIL_INLINE static elements read(const std::byte* from) {
    const word both = load<std::uint32_t>(from);
    return two_vectors{decoded(both & 0xffffU), decoded(both >> 16)};
  }
  HOCKET_DETAIL_INLINE static void write(std::byte* to, elements from) {
    store<std::uint32_t>(to, encoded(from.first) | (encoded(from.second) << 16));
  }
  HOCKET_DETAIL_INLINE static elements round(elements from) {
    return two_vectors{decoded(encoded(from.first)), decoded(encoded(from.second))};
  }

  HOCKET_DETAIL_INLINE static vector<float> decode(const std::byte* from) {
    return decoded(__builtin_convertvector(load_halves(from), word));
  }
  HOCKET_DETAIL_INLINE static void encode(std::byte* to, vector<float> value) { store_halves(to, encoded(value)); }

 private:
  HOCKET_DETAIL_INLINE static vector<float> decoded(word bits) {
    const auto magnitude = reinterpret_cast<signed_word>(bits & std::uint32_t{layout::nan});
    const signed_word normal = (magnitude << layout::extra_bits) + layout::rebias;
    const auto subnormal = reinterpret_cast<signed_word>(__builtin_convertvector(magnitude, vector<float>) *
                                                         hocket::detail::power_of_two(layout::unit_exponent));
    signed_word result = magnitude < layout::smallest_normal ? subnormal : normal;
    result = magnitude > layout::largest ? hocket::detail::float_infinity_bits + signed_word{} : result;
    result |= reinterpret_cast<signed_word>((bits & std::uint32_t{layout::sign}) << 16);
    result = magnitude > layout::infinity ? hocket::detail::float_nan_bits + signed_word{} : result;
    return reinterpret_cast<vector<float>>(result);
  }
  HOCKET_DETAIL_INLINE static word encoded(vector<float> value) {
    constexpr float aligner = hocket::detail::power_of_two(layout::unit_exponent + 23);
    constexpr std::uint32_t just_below_half = (1U << (layout::extra_bits - 1)) - 1;
    const auto bits = reinterpret_cast<word>(value);
    const word magnitude = bits & 0x7fffffffU;
    const word odd = (magnitude >> layout::extra_bits) & 1U;
    const word normal = (magnitude + (just_below_half - std::uint32_t{layout::rebias}) + odd) >> layout::extra_bits;
    const vector<float> aligned = reinterpret_cast<vector<float>>(magnitude & 0x3fffffffU) + aligner;
    const word subnormal = reinterpret_cast<word>(aligned) - __builtin_bit_cast(std::uint32_t, aligner);
    const auto compared = reinterpret_cast<signed_word>(magnitude);
    word result = compared < layout::first_normal ? subnormal : normal;
    const signed_word overflows = reinterpret_cast<signed_word>(result) > layout::overflow;
    result = overflows ? std::uint32_t{layout::overflow} + word{} : result;
    result |= (bits >> 16) & std::uint32_t{layout::sign};
    return are_nans(compared) ? std::uint32_t{layout::nan} + word{} : result;
  }
};

#endif

// ---- loops ----------------------------------------------------------------------------------------------------------

template <class Element, std::size_t Vectors>
struct two_blocks;

/// 1, 2, 4 or 8 vectors at consecutive places. Not an array: g++ would keep that in memory, because it unrolls loops
/// over an array after it has decided what is kept in registers.
template <class Element, std::size_t Vectors>
using block = std::conditional_t<Vectors == 1, elements<Element>, two_blocks<Element, Vectors>>;

template <class Element, std::size_t Vectors>
struct two_blocks {
  using part = block<Element, Vectors / 2>;
  static constexpr std::size_t offset = Vectors / 2 * width;
  part low, high;

  HOCKET_DETAIL_INLINE static two_blocks read(const std::byte* from) {
    return {part::read(from), part::read(from + offset)};
  }
  HOCKET_DETAIL_INLINE static void write(std::byte* to, const two_blocks& from) {
    part::write(to, from.low);
    part::write(to + offset, from.high);
  }
  template <vector_function Function>
  HOCKET_DETAIL_INLINE static two_blocks combine(const two_blocks& a, const two_blocks& b) {
    return {part::template combine<Function>(a.low, b.low), part::template combine<Function>(a.high, b.high)};
  }
  HOCKET_DETAIL_INLINE static two_blocks round(const two_blocks& value) {
    return {part::round(value.low), part::round(value.high)};
  }
};

/// Reads a block of each source, at `offset` bytes from its beginning.
template <class Block>
struct blocks_at {
  const void* const* from;
  std::size_t offset;

  HOCKET_DETAIL_INLINE Block operator[](std::size_t source) const {
    return Block::read(static_cast<const std::byte*>(from[source]) + offset);
  }
};

template <vector_function Function, class Block, bool Rounds, class Blocks>
HOCKET_DETAIL_INLINE Block combine_from_left(const Blocks& from, std::size_t sources) {
  Block sum = from[0];
  for (std::size_t k = 1; k < sources; ++k) {
    sum = Block::template combine<Function>(sum, from[k]);
    if constexpr (Rounds) sum = Block::round(sum);
  }
  return sum;
}

/// The fixed tree: see `hocket::detail::walk_fixed_tree`, whose function objects would not have this target.
template <vector_function Function, class Block, class Blocks>
HOCKET_DETAIL_INLINE Block combine_in_tree(const Blocks& from, std::size_t sources) {
  const std::size_t members = hocket::detail::members_of_fixed_tree(sources);
  const std::size_t pairs = sources - members;
  Block kept[hocket::detail::fixed_tree_depth];
  Block value;
  std::size_t level = 0;
  for (std::size_t member = 0; member < members; ++member, ++level) {
    value = from[member < pairs ? 2 * member : member + pairs];
    if (member < pairs) value = Block::round(Block::template combine<Function>(value, from[2 * member + 1]));
    for (std::size_t complete = member; complete % 2 == 1; complete /= 2) {
      value = Block::round(Block::template combine<Function>(kept[--level], value));
    }
    kept[level] = value;
  }
  return value;
}

/// The combination of a block of each source.
template <vector_function Function, class Block, vector_order Order, class Blocks>
HOCKET_DETAIL_INLINE Block combine_blocks(const Blocks& from, std::size_t sources) {
  if constexpr (Order == vector_order::in_tree) {
    return combine_in_tree<Function, Block>(from, sources);
  } else {
    return combine_from_left<Function, Block, Order == vector_order::from_left_rounded>(from, sources);
  }
}

template <vector_function Function, class Element>
HOCKET_VECTORIZE HOCKET_DETAIL_TARGET HOCKET_NO_INLINE void combine_vector_in_tree(std::byte* to,
                                                                                   const void* const* from,
                                                                                   std::size_t sources,
                                                                                   std::size_t offset) {
  using one = elements<Element>;
  one::write(to, combine_in_tree<Function, one>(blocks_at<one>{from, offset}, sources));
}

/// The combination of a single vector of each source. The code for a tree is long, so it is not repeated.
template <vector_function Function, class Element, vector_order Order>
HOCKET_DETAIL_INLINE elements<Element> combine_vector(const void* const* from, std::size_t sources,
                                                      std::size_t offset) {
  using one = elements<Element>;
  if constexpr (Order == vector_order::in_tree) {
    std::byte result[width];
    combine_vector_in_tree<Function, Element>(result, from, sources, offset);
    return one::read(result);
  } else {
    return combine_blocks<Function, one, Order>(blocks_at<one>{from, offset}, sources);
  }
}

/// Combines `bytes` bytes of all sources; at least `width`. The first and the last vector may overlap their neighbours,
/// and are stored last: if the destination is a source, nothing is read after it was written.
template <vector_function Function, class Element, vector_order Order>
HOCKET_VECTORIZE HOCKET_DETAIL_TARGET void combine(std::byte* to, const void* const* from, std::size_t sources,
                                                   std::size_t bytes) {
  using one = elements<Element>;
  using many = block<Element, one::vectors_at_once>;
  constexpr std::size_t step = one::vectors_at_once * width;
  const std::size_t last = bytes - width;
  const one first_vector = combine_vector<Function, Element, Order>(from, sources, 0);
  const one last_vector = combine_vector<Function, Element, Order>(from, sources, last);
  std::size_t offset = (0 - reinterpret_cast<std::uintptr_t>(to)) % width;
  if constexpr (one::vectors_at_once > 1) {
    for (; offset + step <= bytes; offset += step) {
      many::write(to + offset, combine_blocks<Function, many, Order>(blocks_at<many>{from, offset}, sources));
    }
  }
  for (; offset < last; offset += width) {
    one::write(to + offset, combine_vector<Function, Element, Order>(from, sources, offset));
  }
  one::write(to, first_vector);
  one::write(to + last, last_vector);
}

/// Converts `count` elements, at least as many as a vector has floats, between `Small` and float; the last vector may
/// overlap its neighbour. Memory must not overlap.
template <class Small, vector_conversion Conversion>
HOCKET_VECTORIZE HOCKET_DETAIL_TARGET void convert(std::byte* to, const std::byte* from, std::size_t count,
                                                   float divisor) {
  constexpr std::size_t lanes = width / sizeof(float);
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t place = i + lanes <= count ? i : count - lanes;
    if constexpr (Conversion == vector_conversion::decode) {
      store<float>(to + place * sizeof(float), elements<Small>::decode(from + place * sizeof(Small)));
    } else {
      vector<float> value = load<float>(from + place * sizeof(float));
      if constexpr (Conversion == vector_conversion::encode_quotient) value = value / divisor;
      elements<Small>::encode(to + place * sizeof(Small), value);
    }
  }
}

#if HOCKET_DETAIL_WIDTH == 16

/// Reads fewer bytes than a vector has; the other elements are zero.
template <class Element>
struct parts_of_vectors {
  const void* const* from;
  std::size_t bytes;

  elements<Element> operator[](std::size_t source) const {
    std::byte padded[width] = {};
    __builtin_memcpy(padded, from[source], bytes);
    return elements<Element>::read(padded);
  }
};

/// Combines fewer bytes than a vector has.
template <vector_function Function, class Element, vector_order Order>
HOCKET_VECTORIZE void combine_few(std::byte* to, const void* const* from, std::size_t sources, std::size_t bytes) {
  const parts_of_vectors<Element> parts{from, bytes};
  std::byte result[width];
  elements<Element>::write(result, combine_blocks<Function, elements<Element>, Order>(parts, sources));
  __builtin_memcpy(to, result, bytes);
}

#endif

}  // namespace kernel::detail::HOCKET_DETAIL_LEVEL
HOCKET_END_NAMESPACE

#undef HOCKET_DETAIL_INLINE
#undef HOCKET_DETAIL_LEVEL
#undef HOCKET_DETAIL_WIDTH
#undef HOCKET_DETAIL_TARGET
#undef HOCKET_DETAIL_ANY
#undef HOCKET_DETAIL_THREE
#undef HOCKET_DETAIL_F16C
