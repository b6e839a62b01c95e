// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tree over contributions that require(fixed_tree) specifies: its shape, and that it is the same if the number of
// contributions is known at compile time.
#include <hocket/operation/fixed_tree.hpp>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string walked(std::size_t contributions, std::size_t& deepest) {
  std::vector<std::string> kept(hocket::detail::fixed_tree_depth);
  hocket::detail::walk_fixed_tree(
      contributions,
      [&](std::size_t level, std::size_t i) {
        deepest = std::max(deepest, level);
        kept.at(level) = std::to_string(i);
      },
      [&](std::size_t level) { kept.at(level) = '(' + kept[level] + ' ' + kept.at(level + 1) + ')'; });
  return kept[0];
}

/// The tree by its definition: first the pairs, then pairs of all values, repeatedly.
std::string defined(std::size_t contributions) {
  std::size_t members = 1;
  while (2 * members <= contributions) members *= 2;
  std::vector<std::string> values;
  for (std::size_t i = 0; i < contributions; ++i) {
    values.push_back(std::to_string(i));
    const std::size_t pairs = contributions - members;
    if (i % 2 == 0 || i >= 2 * pairs) continue;
    const std::string right = std::exchange(values.back(), {});
    values.pop_back();
    values.back() = '(' + values.back() + ' ' + right + ')';
  }
  while (values.size() > 1) {
    std::vector<std::string> next;
    for (std::size_t i = 0; i < values.size(); i += 2) next.push_back('(' + values[i] + ' ' + values[i + 1] + ')');
    values = std::move(next);
  }
  return values[0];
}

struct named {
  static std::string read(std::size_t i) { return std::to_string(i); }
  static std::string combine(const std::string& a, const std::string& b) { return '(' + a + ' ' + b + ')'; }
};

template <std::size_t Contributions>
void check_known() {
  CHECK(hocket::detail::fixed_tree_over<Contributions>::value(named()) == defined(Contributions));
}

template <std::size_t... Less>
void check_known(std::index_sequence<Less...>) {
  (check_known<Less + 1>(), ...);
}

}  // namespace

TEST_CASE("walk_fixed_tree visits the fixed tree as defined") {
  CHECK(defined(5) == "(((0 1) 2) (3 4))");
  CHECK(defined(6) == "(((0 1) (2 3)) (4 5))");
  CHECK(defined(8) == "(((0 1) (2 3)) ((4 5) (6 7)))");
  for (std::size_t contributions = 1; contributions <= 300; ++contributions) {
    std::size_t deepest = 0;
    CHECK(walked(contributions, deepest) == defined(contributions));
    CHECK(deepest < 12);
  }
}

TEST_CASE("the fixed tree is the same if the number of contributions is known at compile time") {
  check_known(std::make_index_sequence<19>());
}

TEST_CASE("in_fixed_tree preserves the commutativity and the results of an operation") {
  using sum = hocket::detail::in_fixed_tree<std::plus<>>;
  STATIC_REQUIRE(hocket::is_commutative_v<sum, float>);
  const auto last = [](int, int b) { return b; };
  STATIC_REQUIRE(!hocket::is_commutative_v<hocket::detail::in_fixed_tree<decltype(last)>, int>);
  CHECK(hocket::reduction<sum, float>::combine(sum{}, 1.5F, 2.0F) == 3.5F);
}
