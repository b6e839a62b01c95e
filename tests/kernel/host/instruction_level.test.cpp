// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The levels of instructions: at each level that the machine has, the element kernels of the library's operations give
// the bits of a fold of single elements, for random values and special ones; and the choice of a level.
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/kernel/host/preparation.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/operations.hpp>

#include <algorithm>
#include <atomic>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using hocket::kernel::instruction_level;

namespace {

/// Restores the level in use.
class kept_level {
 public:
  kept_level() = default;
  kept_level(const kept_level&) = delete;
  kept_level& operator=(const kept_level&) = delete;
  ~kept_level() { hocket::kernel::set_instruction_level(level_); }

 private:
  instruction_level level_ = hocket::kernel::current_instruction_level();
};

std::vector<instruction_level> levels_of_machine() {
  std::vector<instruction_level> all;
  for (const auto level : {instruction_level::generic, instruction_level::avx2, instruction_level::avx512}) {
    if (level <= hocket::kernel::supported_instruction_level()) all.push_back(level);
  }
  return all;
}

// ---- values ---------------------------------------------------------------------------------------------------------

template <class T>
T of_bits(std::uint64_t bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}

/// NaNs of both signs with payloads, quiet and signalling; infinities, zeros, the ends of subnormals and of normals.
template <class T>
T special_number(std::uint64_t which) {
  constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  const std::uint64_t one = 1;
  const std::uint64_t sign = one << (8 * sizeof(T) - 1);
  const std::uint64_t infinity = (sign - 1) >> mantissa << mantissa;
  const std::uint64_t quiet = one << (mantissa - 1);
  const std::uint64_t magnitudes[] = {infinity | quiet,
                                      infinity | quiet | 1,
                                      infinity | quiet | 3,
                                      infinity | 1,
                                      infinity | (quiet - 1),
                                      infinity,
                                      infinity,
                                      infinity - 1,
                                      0,
                                      0,
                                      1,
                                      2,
                                      (one << mantissa) - 1,
                                      one << mantissa,
                                      (one << mantissa) + 1,
                                      infinity >> 1};
  return of_bits<T>(magnitudes[which / 2 % std::size(magnitudes)] | (which % 2 == 0 ? 0 : sign));
}

/// A number, by turns special, of random bits, and of a usual magnitude.
template <class T>
T number(int rank, std::size_t i) {
  const std::uint64_t bits = random_bits(rank, i);
  if constexpr (requires { typename T::value_type; }) {
    using part = typename T::value_type;
    return {number<part>(rank, 2 * i), number<part>(rank, 2 * i + 1)};
  } else if constexpr (std::is_integral_v<T>) {
    const T ends[] = {0, 1, std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), static_cast<T>(-1)};
    return bits % 4 == 0 ? ends[bits / 4 % std::size(ends)] : of_bits<T>(bits >> 8 | bits << 56);
  } else {
    if (bits % 4 == 0) return special_number<T>(bits / 4);
    return bits % 4 == 1 ? of_bits<T>(bits >> 8 | bits << 56) : sample<T>(rank, i);
  }
}

// ---- the expected result --------------------------------------------------------------------------------------------

/// a ∘ b in the accumulator. Integers wrap. Of two NaNs, sums and products have the first one, as processors define.
template <class Op, class T, class Accumulator>
Accumulator combined(const Op& op, const Accumulator& a, const Accumulator& b) {
  constexpr auto function = hocket::kernel::detail::vector_operation<Op, T>::function;
  using enum hocket::kernel::detail::vector_function;
  if constexpr (std::is_integral_v<Accumulator> && function == plus) {
    return static_cast<Accumulator>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else if constexpr (std::is_integral_v<Accumulator> && function == multiplies) {
    return static_cast<Accumulator>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else if constexpr (requires { a.real(); }) {
    using part = typename Accumulator::value_type;
    return {combined<Op, part, part>(op, a.real(), b.real()), combined<Op, part, part>(op, a.imag(), b.imag())};
  } else if constexpr (std::is_floating_point_v<Accumulator> && (function == plus || function == multiplies)) {
    if (a != a && b != b) {
      std::conditional_t<sizeof a == 4, std::uint32_t, std::uint64_t> bits = 0;
      std::memcpy(&bits, &a, sizeof a);
      return of_bits<Accumulator>(bits | decltype(bits){1} << (std::numeric_limits<Accumulator>::digits - 2));
    }
    return hocket::reduction<Op, T>::combine(op, a, b);
  } else {
    return hocket::reduction<Op, T>::combine(op, a, b);
  }
}

template <class Op, class T, class Partial>
Partial expected_element(const Op& op, const std::vector<std::vector<Partial>>& from, std::size_t i) {
  using accumulator = typename hocket::reduction<Op, T>::accumulator;
  if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
    Partial kept[hocket::detail::fixed_tree_depth];
    hocket::detail::walk_fixed_tree(
        from.size(), [&](std::size_t level, std::size_t source) { kept[level] = from[source][i]; },
        [&](std::size_t level) {
          kept[level] = static_cast<Partial>(
              combined<Op, T>(op, static_cast<accumulator>(kept[level]), static_cast<accumulator>(kept[level + 1])));
        });
    return kept[0];
  } else {
    auto sum = static_cast<accumulator>(from[0][i]);
    for (std::size_t k = 1; k < from.size(); ++k) {
      sum = combined<Op, T>(op, sum, static_cast<accumulator>(from[k][i]));
    }
    return static_cast<Partial>(sum);
  }
}

// ---- the table ------------------------------------------------------------------------------------------------------

/// An operation on partial results, without its type: what depends on the operation is compiled for each of them.
template <class Partial>
struct tested {
  const hocket::kernel::element_kernel* kernel;
  const void* op;
  Partial (*expected)(const void* op, const std::vector<std::vector<Partial>>& from, std::size_t i);
};

/// Around the width of a vector at each level, the bytes that a loop takes at once, and a tile.
std::vector<std::size_t> counts(std::size_t size) {
  std::vector<std::size_t> all = {0, 1, 2, 3, 7};
  for (const std::size_t bytes : {16U, 32U, 64U, 128U, 256U, 1024U, 5000U}) {
    const std::size_t count = bytes / size;
    for (const std::size_t each : {count - 1, count, count + 1}) all.push_back(each);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

struct placement {
  std::size_t offset;  ///< of the elements from an aligned address, in elements
  int alias;           ///< the source that is also the destination; -1: none
};

/// The result of the kernel in the level in use, for copies of `values`.
template <class Partial>
std::vector<Partial> result_of(const tested<Partial>& of, const std::vector<std::vector<Partial>>& values,
                               placement where) {
  const std::size_t count = values[0].size();
  std::vector<guarded<Partial>> buffers;
  for (std::size_t k = 0; k < values.size(); ++k) buffers.emplace_back(values[k], (where.offset + k) % 4);
  guarded<Partial> apart(count, where.offset);
  guarded<Partial>& to = where.alias < 0 ? apart : buffers[static_cast<std::size_t>(where.alias)];
  std::vector<const void*> from;
  for (auto& each : buffers) from.push_back(each.elements().data());
  if (from.size() == 2) {
    of.kernel->combine_two(of.op, to.elements().data(), from[0], from[1], count);
  } else {
    of.kernel->combine_many(of.op, to.elements().data(), from.data(), from.size(), count);
  }
  bool intact = apart.intact();
  for (const auto& each : buffers) intact = intact && each.intact();
  CHECK(intact);
  const auto elements = to.elements();
  return std::vector<Partial>(elements.begin(), elements.end());
}

template <class Partial>
std::string differences(const tested<Partial>& of, std::size_t sources, std::size_t count) {
  std::vector<std::vector<Partial>> values(sources, std::vector<Partial>(count));
  for (std::size_t k = 0; k < sources; ++k) {
    for (std::size_t i = 0; i < count; ++i) values[k][i] = number<Partial>(static_cast<int>(k), i);
  }
  std::vector<Partial> expected(count);
  for (std::size_t i = 0; i < count; ++i) expected[i] = of.expected(of.op, values, i);
  std::string all;
  for (const instruction_level level : levels_of_machine()) {
    hocket::kernel::set_instruction_level(level);
    const auto last = static_cast<int>(sources) - 1;
    for (const placement where : {placement{0, -1}, placement{1, 0}, placement{3, last}}) {
      const auto found = result_of(of, values, where);
      const std::span<const Partial> a(found), b(expected);
      if (same_bytes(a, b)) continue;
      all += std::string(hocket::kernel::instruction_level_name(level)) + ", offset " + std::to_string(where.offset) +
             ", " + first_difference(a, b) + "\n";
    }
  }
  return all;
}

template <class Partial>
void check_all_sizes(const tested<Partial>& of) {
  const kept_level keep;
  for (std::size_t sources : {2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 17U}) {
    for (const std::size_t count : counts(sizeof(Partial))) {
      INFO(sources << " sources of " << count << " elements");
      CHECK(differences(of, sources, count) == "");
    }
  }
}

template <class T, class Op>
void check_levels(const Op& op = {}) {
  using partial = typename hocket::reduction<Op, T>::partial;
#if HOCKET_DETAIL_VECTOR_KERNELS
  static_assert(hocket::kernel::detail::vector_operation<Op, T>::exists);
#endif
  INFO("elements are " << hocket::scalar_name<T>());
  check_all_sizes<partial>({&hocket::kernel::element_kernel_of<Op, T>, &op,
                            [](const void* operation, const std::vector<std::vector<partial>>& from, std::size_t i) {
                              return expected_element<Op, T>(*static_cast<const Op*>(operation), from, i);
                            }});
}

/// Compares the preparation of contributions and the end of results with those of single elements.
template <class T, class Op>
void check_conversions(const Op& op = {}) {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  const kept_level keep;
  for (const std::size_t count : counts(2)) {
    std::vector<T> values(count), results(count), expected_results(count);
    std::vector<partial> sums(count), partials(count), expected_partials(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = number<T>(0, i);
      sums[i] = number<partial>(1, i);
      expected_partials[i] = reduction::prepare(op, values[i]);
      expected_results[i] = reduction::finish(op, sums[i], 3);
    }
    const auto bytes_of = [](auto& of) { return reinterpret_cast<std::byte*>(of.data()); };
    for (const instruction_level level : levels_of_machine()) {
      INFO(count << " elements, level " << hocket::kernel::instruction_level_name(level));
      hocket::kernel::set_instruction_level(level);
      hocket::kernel::prepare_elements<Op, T>(&op, bytes_of(partials), bytes_of(values), count);
      hocket::kernel::finish_elements<Op, T>(&op, bytes_of(results), bytes_of(sums), 3, count);
      CHECK(same_bytes<partial>(partials, expected_partials));
      CHECK(same_bytes<T>(results, expected_results));
    }
  }
}

template <class T>
void check_order() {
  check_levels<T, hocket::minimum>();
  check_levels<T, hocket::maximum>();
}

template <class T>
void check_integer() {
  check_levels<T, std::plus<>>();
  check_levels<T, std::multiplies<T>>();
  check_levels<T, std::bit_and<>>();
  check_levels<T, std::bit_or<>>();
  check_levels<T, std::bit_xor<>>();
  check_order<T>();
}

template <class T>
void check_floating() {
  check_levels<T, std::plus<>>();
  check_levels<T, std::multiplies<>>();
  check_order<T>();
  check_levels<T, hocket::detail::in_fixed_tree<std::plus<>>>();
  check_levels<T, hocket::average>();
}

}  // namespace

TEST_CASE("kernels give the same bits at each level: float and double") {
  check_floating<float>();
  check_floating<double>();
}

TEST_CASE("kernels give the same bits at each level: bfloat16") {
  check_floating<hocket::bfloat16>();
  check_levels<hocket::bfloat16, hocket::detail::in_fixed_tree<hocket::minimum>>();
  check_levels<hocket::bfloat16>(hocket::scaled_sum<float>{2});
  check_levels<float, hocket::detail::wired<std::plus<>, hocket::bfloat16>>();
}

TEST_CASE("kernels give the same bits at each level: half") {
  check_floating<hocket::half>();
  check_levels<hocket::half>(hocket::scaled_sum<float>{2});
  check_levels<float, hocket::detail::wired<hocket::maximum, hocket::half>>();
}

TEST_CASE("kernels give the same bits at each level: integers of 8 and 16 bits") {
  check_integer<std::int8_t>();
  check_integer<std::uint8_t>();
  check_integer<std::int16_t>();
  check_integer<std::uint16_t>();
}

TEST_CASE("kernels give the same bits at each level: integers of 32 and 64 bits") {
  check_integer<std::int32_t>();
  check_integer<std::uint32_t>();
  check_integer<std::int64_t>();
  check_integer<std::uint64_t>();
}

TEST_CASE("kernels give the same bits at each level: complex numbers") {
  check_levels<std::complex<float>, std::plus<>>();
  check_levels<std::complex<double>, std::plus<>>();
  check_levels<std::complex<float>, hocket::detail::in_fixed_tree<std::plus<>>>();
}

TEST_CASE("all halves and bfloat16s are converted alike at each level") {
  const kept_level keep;
  const auto check_all = []<class T>(T) {
    std::vector<T> a(1 << 16), b(1 << 16), first, found(1 << 16);
    for (std::uint32_t bits = 0; bits < a.size(); ++bits) {
      a[bits] = T::from_bits(static_cast<std::uint16_t>(bits));
      b[bits] = T::from_bits(static_cast<std::uint16_t>(random_bits(0, bits)));
    }
    const std::plus<> op;
    for (const instruction_level level : levels_of_machine()) {
      hocket::kernel::set_instruction_level(level);
      hocket::kernel::element_kernel_of<std::plus<>, T>.combine_two(&op, found.data(), a.data(), b.data(), a.size());
      bool right = true;
      for (std::size_t i = 0; i < a.size(); ++i) right = right && found[i].bits() == T(a[i] + b[i]).bits();
      CHECK(right);
    }
  };
  check_all(hocket::half());
  check_all(hocket::bfloat16());
}

TEST_CASE("contributions are prepared and results finished with the same bits at each level") {
  check_conversions<hocket::half, hocket::average>();
  check_conversions<hocket::bfloat16, hocket::average>();
  check_conversions<hocket::bfloat16, hocket::detail::in_fixed_tree<hocket::average>>();
  check_conversions<float, hocket::average>();
  check_conversions<float, hocket::detail::wired<std::plus<>, hocket::half>>();
  check_conversions<float, hocket::detail::wired<std::plus<>, hocket::bfloat16>>();
  check_conversions<double, hocket::detail::wired<std::plus<>, hocket::bfloat16>>();
  check_conversions<float, hocket::detail::canonical<hocket::minimum>>();
  check_conversions<hocket::half, hocket::detail::canonical<hocket::maximum>>();
  check_conversions<std::int16_t, hocket::detail::canonical<hocket::maximum>>();
}

TEST_CASE("operations and types of users keep their own loops") {
  using hocket::kernel::detail::vector_operation;
  const auto sum = [](float a, float b) { return a + b; };
  CHECK_FALSE(vector_operation<decltype(sum), float>::exists);
  CHECK_FALSE(vector_operation<std::plus<double>, float>::exists);
  CHECK_FALSE(vector_operation<std::plus<>, bool>::exists);
  CHECK_FALSE(vector_operation<std::plus<>, long double>::exists);
  CHECK_FALSE(vector_operation<std::multiplies<>, std::complex<float>>::exists);
  CHECK_FALSE(vector_operation<std::plus<>, hocket::exact_sum<float>>::exists);
  CHECK_FALSE(vector_operation<hocket::detail::wired<std::plus<>, hocket::half>, double>::exists);
}

TEST_CASE("HOCKET_INSTRUCTIONS limits the level, and is ignored with a reason if it can't be followed") {
  using hocket::kernel::choose_instruction_level;
  struct {
    const char* value;
    instruction_level supported, level;
    const char* reason;
  } const cases[] = {
      {nullptr, instruction_level::avx512, instruction_level::avx512, ""},
      {"", instruction_level::avx2, instruction_level::avx2, ""},
      {"generic", instruction_level::avx512, instruction_level::generic, ""},
      {"generic", instruction_level::generic, instruction_level::generic, ""},
      {"avx2", instruction_level::avx512, instruction_level::avx2, ""},
      {"avx512", instruction_level::avx512, instruction_level::avx512, ""},
      {"avx512", instruction_level::avx2, instruction_level::avx2, "lacks AVX-512"},
      {"avx2", instruction_level::generic, instruction_level::generic, "lacks AVX2"},
      {"AVX2", instruction_level::avx512, instruction_level::avx512, "must be generic, avx2 or avx512"},
      {"avx2 ", instruction_level::avx512, instruction_level::avx512, "must be generic, avx2 or avx512"},
      {"avx", instruction_level::generic, instruction_level::generic, "must be generic, avx2 or avx512"},
  };
  for (const auto& each : cases) {
    INFO((each.value == nullptr ? "not set" : each.value));
    const auto chosen = choose_instruction_level(each.value, each.supported);
    CHECK(chosen.level == each.level);
    const std::string_view reason = chosen.reason == nullptr ? std::string_view() : chosen.reason;
    CHECK(reason.empty() == (*each.reason == 0));
    CHECK(reason.find(each.reason) != reason.npos);
  }

  const char* const before = std::getenv("HOCKET_INSTRUCTIONS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("HOCKET_INSTRUCTIONS", "generic", 1);
  CHECK(hocket::kernel::chosen_instruction_level().level == instruction_level::generic);
  setenv("HOCKET_INSTRUCTIONS", "fast", 1);
  CHECK(hocket::kernel::chosen_instruction_level().level == hocket::kernel::supported_instruction_level());
  CHECK(hocket::kernel::chosen_instruction_level().reason != nullptr);
  setenv("HOCKET_INSTRUCTIONS", kept.c_str(), 1);
}

TEST_CASE("the level can be set at any time, and is limited to what the machine has") {
  const kept_level keep;
  for (const instruction_level level : levels_of_machine()) {
    CHECK(hocket::kernel::set_instruction_level(level) == level);
    CHECK(hocket::kernel::current_instruction_level() == level);
  }
  CHECK(hocket::kernel::set_instruction_level(instruction_level::avx512) ==
        hocket::kernel::supported_instruction_level());

  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) {
      for (const instruction_level level : levels_of_machine()) hocket::kernel::set_instruction_level(level);
    }
  });
  const std::plus<> op;
  const tested<hocket::half> sum{&hocket::kernel::element_kernel_of<std::plus<>, hocket::half>, &op, nullptr};
  const auto values = samples_of_all<hocket::half>(2, 333);
  const auto once = result_of(sum, values, {0, -1});
  bool same = true;
  for (int round = 0; round < 300; ++round) {
    same = same && same_bytes<hocket::half>(result_of(sum, values, {0, -1}), once);
  }
  done = true;
  other.join();
  CHECK(same);
}
