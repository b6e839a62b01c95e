// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shows why small types accumulate in float. tests/static/scalar.static.cpp tests the values of the traits.
#include <hocket/scalar/traits.hpp>

#include "support/catch.hpp"

#include <type_traits>

namespace {

template <class T, class Accumulator>
float sum_of_ones(int count) {
  Accumulator sum{};
  for (int i = 0; i < count; ++i) sum = Accumulator(sum + T(1));
  return static_cast<float>(sum);
}

}  // namespace

TEMPLATE_TEST_CASE("traits: accumulators of small types count further than the types themselves", "[scalar]",
                   hocket::half, hocket::bfloat16, hocket::float8_e4m3, hocket::float8_e5m2) {
  static_assert(!std::is_same_v<hocket::accumulator_t<TestType>, TestType>);
  CHECK(sum_of_ones<TestType, TestType>(5000) < 5000);
  CHECK(sum_of_ones<TestType, hocket::accumulator_t<TestType>>(5000) == 5000);
}
