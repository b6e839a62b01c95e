// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The element kernels: for any number of sources, length, alignment and destination (also one of the sources), the
// result is the fold from left to right in the accumulator, rounded once.
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

using namespace hocket_test;

namespace {

/// Lengths around the tile of `combine_tiled`, which has 4096 bytes of accumulators.
template <class Op, class T>
std::vector<std::size_t> lengths() {
  const std::size_t tile = 4096 / sizeof(typename hocket::reduction<Op, T>::accumulator);
  return {0, 1, 2, 3, 15, 17, tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 5};
}

template <class Op, class T>
std::vector<T> fold(const Op& op, const std::vector<std::vector<T>>& sources, std::size_t count) {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto sum = static_cast<accumulator>(sources[0][i]);
    for (std::size_t k = 1; k < sources.size(); ++k) {
      sum = reduction::combine(op, sum, static_cast<accumulator>(sources[k][i]));
    }
    result[i] = static_cast<T>(sum);
  }
  return result;
}

/// `alias`: the source that is also the destination; -1: none.
template <class Op, class T>
bool many_is_right(const Op& op, std::size_t sources, std::size_t count, std::size_t offset, int alias) {
  const auto values = samples_of_all<T>(static_cast<int>(sources), count);
  const auto expected = fold(op, values, count);
  std::vector<guarded<T>> buffers;
  for (const auto& each : values) buffers.emplace_back(each, offset);
  guarded<T> apart(count, 1 - offset % 2);
  std::vector<const void*> from;
  for (auto& each : buffers) from.push_back(each.elements().data());
  guarded<T>& to = alias < 0 ? apart : buffers[static_cast<std::size_t>(alias)];
  hocket::kernel::element_kernel_of<Op, T>.combine_many(&op, to.elements().data(), from.data(), sources, count);
  bool intact = apart.intact();
  for (std::size_t k = 0; k < sources; ++k) {
    intact = intact && buffers[k].intact();
    if (static_cast<int>(k) != alias) intact = intact && same_bytes<T>(buffers[k].elements(), values[k]);
  }
  return intact && same_bytes<T>(to.elements(), expected);
}

template <class Op, class T>
bool two_is_right(const Op& op, std::size_t count, std::size_t offset, int alias) {
  const auto values = samples_of_all<T>(2, count);
  const auto expected = fold(op, values, count);
  guarded<T> a(values[0], offset), b(values[1], 1 - offset % 2), apart(count);
  guarded<T>& to = alias < 0 ? apart : alias == 0 ? a : b;
  hocket::kernel::element_kernel_of<Op, T>.combine_two(&op, to.elements().data(), a.elements().data(),
                                                       b.elements().data(), count);
  return a.intact() && b.intact() && apart.intact() && same_bytes<T>(to.elements(), expected);
}

template <class T, class Op>
void check(const Op& op) {
  for (const std::size_t count : lengths<Op, T>()) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}}) {
      for (const int alias : {-1, 0, 1}) CHECK(two_is_right<Op, T>(op, count, offset, alias));
      for (std::size_t sources = 2; sources <= 17; ++sources) {
        INFO(sources << " sources of " << count << " elements at offset " << offset);
        for (const int alias : {-1, 0, static_cast<int>(sources) - 1, static_cast<int>(sources) / 2}) {
          CHECK(many_is_right<Op, T>(op, sources, count, offset, alias));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("element kernels fold from left to right, for each arity, length, alignment and destination") {
  check<float>(std::plus<>{});
  check<double>(std::plus<>{});
  check<float>(hocket::minimum{});
  check<std::uint8_t>(std::plus<>{});
  check<std::int32_t>(std::multiplies<>{});
}

TEST_CASE("element kernels of small floating-point types accumulate in float and round once") {
  check<hocket::half>(std::plus<>{});
  check<hocket::bfloat16>(hocket::maximum{});
  check<hocket::float8_e4m3>(std::plus<>{});
}

TEST_CASE("element kernels accept elements of any size and operations that are not commutative") {
  check<affine_map>(compose{});
  check<hocket::exact_sum<float>>(std::plus<>{});
}

TEST_CASE("an operation keeps its captured values") {
  const float factor = 3;
  const auto op = [factor](float a, float b) { return a + factor * b; };
  const float a[2] = {1, 2}, b[2] = {10, 20};
  float to[2];
  hocket::kernel::element_kernel_of<decltype(op), float>.combine_two(&op, to, a, b, 2);
  CHECK(to[0] == 31);
  CHECK(to[1] == 62);
}
