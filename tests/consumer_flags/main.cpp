// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Results do not depend on the flags with which a consumer compiles the headers, nor on a mode in which the processor
// takes subnormal numbers for zero. Compiled header-only with several sets of flags: see ../CMakeLists.txt. Has no test
// framework, because those are not made for these flags. Prints each wrong result, and returns whether there was one.
#include <hocket/parallel.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/schedule/partition.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace {

std::atomic<int> wrong{0};

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::printf("wrong: %s\n", what.c_str());
  ++wrong;
}

template <class T>
using bits_of = std::conditional_t<
    sizeof(T) == 8, std::uint64_t,
    std::conditional_t<sizeof(T) == 4, std::uint32_t, std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;

/// Values are made from bits that the compiler does not know, as those of gradients are.
template <class T>
T from_bits(std::uint64_t bits) {
  const volatile std::uint64_t unknown = bits;
  return std::bit_cast<T>(static_cast<bits_of<T>>(unknown));
}

template <class T>
std::uint64_t to_bits(const T& value) {
  return std::bit_cast<bits_of<T>>(value);
}

template <class T>
constexpr std::uint64_t sign = std::uint64_t{1} << (8 * sizeof(T) - 1);
template <class T>
const std::uint64_t nan_bits = to_bits(std::numeric_limits<T>::quiet_NaN());

/// Two operands and their minimum and maximum, as bits.
struct extremes {
  const char* what;
  std::uint64_t first, second, smaller, larger;
};

/// Reduces vectors that are long enough for the vector kernels, and have a rest after them.
template <class T>
void check_extremes(const char* type, const std::vector<extremes>& rows) {
  for (const extremes& row : rows) {
    for (const bool swapped : {false, true}) {
      hocket::local::run(2, [&](auto comm) {
        const std::vector<T> in(1001, from_bits<T>((comm.rank() == 0) != swapped ? row.first : row.second));
        std::vector<T> low(in.size()), high(in.size());
        hocket::all_reduce(comm, in, low, hocket::minimum{});
        hocket::all_reduce(comm, in, high, hocket::maximum{});
        for (const std::size_t i : {std::size_t{0}, std::size_t{500}, std::size_t{1000}}) {
          expect(to_bits(low[i]) == row.smaller, std::string("minimum of ") + type + ": " + row.what);
          expect(to_bits(high[i]) == row.larger, std::string("maximum of ") + type + ": " + row.what);
        }
      });
    }
  }
}

template <class T>
void check_extremes_of(const char* type) {
  const auto one = to_bits(T(1.0F)), minus_two = to_bits(T(-2.0F));
  std::vector<extremes> rows = {
      {"a number and a NaN", one, nan_bits<T>, nan_bits<T>, nan_bits<T>},
      {"a number and a negative NaN", one, nan_bits<T> | sign<T>, nan_bits<T>, nan_bits<T>},
      {"two numbers", one, minus_two, minus_two, one},
      {"two zeros", 0, sign<T>, sign<T>, 0},
      {"subnormal numbers", 1, 2, 1, 2},
      {"negative subnormal numbers", sign<T> | 1, sign<T> | 2, sign<T> | 2, sign<T> | 1},
      {"a subnormal number and a negative one", 1, sign<T> | 2, sign<T> | 2, 1},
  };
  const auto infinity = to_bits(std::numeric_limits<T>::infinity());
  if (to_bits(T(std::numeric_limits<float>::infinity())) == infinity) {  // float8 has no infinity, or saturates
    rows.push_back({"a number and infinity", one, infinity, one, infinity});
    rows.push_back({"a number and negative infinity", one, infinity | sign<T>, infinity | sign<T>, one});
    rows.push_back({"infinity and a NaN", infinity, nan_bits<T>, nan_bits<T>, nan_bits<T>});
  }
  check_extremes<T>(type, rows);
}

void check_all_extremes() {
  check_extremes_of<float>("float");
  check_extremes_of<double>("double");
  check_extremes_of<hocket::half>("half");
  check_extremes_of<hocket::bfloat16>("bfloat16");
  check_extremes_of<hocket::float8_e4m3>("float8_e4m3");
  check_extremes_of<hocket::float8_e5m2>("float8_e5m2");
}

/// A NaN or an infinity in the gradient of any rank is detected, so that the step is skipped.
template <class T>
void check_gradients(const char* what, std::uint64_t bits, bool finite) {
  hocket::local::run(2, [&](auto comm) {
    const hocket::parameter_layout layout({{"w", 10}});
    auto gradients = hocket::gradients<T>(comm, layout, hocket::last_microbatch, hocket::zero<1>);
    gradients.begin_microbatch(0, 1);
    for (T& each : gradients.of(0)) each = comm.rank() == 1 ? from_bits<T>(bits) : T(1.0F);
    gradients.ready(0);
    gradients.end_microbatch(1, 1);
    gradients.finish();
    expect(hocket::norm(gradients).finite == finite, std::string("finite gradient: ") + what);
  });
}

/// Whether `call` raises `invalid_argument`.
template <class Call>
bool is_refused(const Call& call) {
  try {
    call();
  } catch (const hocket::error& cause) {
    return cause.code() == hocket::errc::invalid_argument;
  }
  return false;
}

/// Numbers that must be numbers are checked.
void check_arguments() {
  const double not_a_number = from_bits<double>(nan_bits<double>);
  expect(is_refused([&] { hocket::clip_factor(1.0, not_a_number); }), "a NaN as the limit of a norm");
  hocket::plan::cost_model model;
  model.latency = not_a_number;
  expect(model.invalid_member() != nullptr, "a NaN as a latency");
  expect(is_refused([&] {
           hocket::plan::pipeline::partition({1, not_a_number, 1}, 2);
         }),
         "a NaN as the cost of a layer");
  hocket::local::run(2, [](auto comm) {
    const auto grid = hocket::mesh<"a">(comm, {2});
    using mesh = std::remove_cvref_t<decltype(grid)>;
    hocket::tensor<float, hocket::extents<8>, mesh, hocket::on<"a", hocket::partial<hocket::mean>>> means(grid);
    expect(is_refused([&] { hocket::convert<"a", hocket::replicated>(means); }), "means without a count");
  });
}

}  // namespace

int main() {
  check_all_extremes();
#if defined(__SSE__)
  _mm_setcsr(_mm_getcsr() | 0x8040);  // threads inherit it
  check_all_extremes();
#endif
  check_gradients<float>("a number", 0x40000000, true);
  check_gradients<float>("a NaN", nan_bits<float>, false);
  check_gradients<float>("infinity", 0x7f800000, false);
  check_gradients<double>("a NaN", nan_bits<double>, false);
  check_arguments();
  return wrong == 0 ? 0 : 1;
}
