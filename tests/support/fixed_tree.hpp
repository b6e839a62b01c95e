// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The result that require(fixed_tree) promises, computed from its definition, one combination after the other.
#pragma once

#include <hocket/operation/traits.hpp>

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace hocket_test {

/// Combines all terms in the fixed tree: first pairs at the beginning, as many as the terms exceed a power of two, then
/// pairs of the remaining terms.
template <class T, class Op>
std::vector<T> in_fixed_tree(const std::vector<std::vector<T>>& terms, const Op& op) {
  const std::size_t members = std::bit_floor(terms.size());
  const std::size_t pairs = terms.size() - members;
  const auto both = [&](const std::vector<T>& a, const std::vector<T>& b) {
    std::vector<T> result(a.size());
    using reduction = hocket::reduction<Op, T>;
    using accumulator = typename reduction::accumulator;
    for (std::size_t i = 0; i < a.size(); ++i) {
      result[i] =
          static_cast<T>(reduction::combine(op, static_cast<accumulator>(a[i]), static_cast<accumulator>(b[i])));
    }
    return result;
  };
  std::vector<std::vector<T>> left;
  for (std::size_t m = 0; m < members; ++m) {
    left.push_back(m < pairs ? both(terms[2 * m], terms[2 * m + 1]) : terms[m + pairs]);
  }
  while (left.size() > 1) {
    std::vector<std::vector<T>> next;
    for (std::size_t i = 0; i < left.size(); i += 2) next.push_back(both(left[i], left[i + 1]));
    left = std::move(next);
  }
  return left[0];
}

}  // namespace hocket_test
