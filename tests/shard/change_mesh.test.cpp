// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Redistributions to another mesh: no sequence of moves is cheaper than the chosen one, and the results are correct.
// unsanitized: it searches every sequence of moves
#include "shard/every_move.hpp"
#include "shard/every_placement.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/change_mesh.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using hocket::dynamic;
using hocket::extents;
using hocket::on;
using hocket::replicated;
using hocket::shard;

namespace {

using sum_over_ranks = hocket::partial<hocket::sum>;
using two_sizes = std::array<std::size_t, 2>;

template <class Mesh, class First, class Second>
using tensor_here = hocket::tensor<double, extents<dynamic, dynamic>, Mesh, on<"dp", First>, on<"tp", Second>>;
template <class Mesh, class First, class Second>
using tensor_there = hocket::tensor<double, extents<dynamic, dynamic>, Mesh, on<"outer", First>, on<"inner", Second>>;

/// Returns the model's cost of an exchange among all ranks, or of a copy if no rank needs data of another rank.
template <class Here, class There, class Placed, class Wanted>
double price_of_last_step(const Here& here, const There& there, const two_sizes& sizes, const Placed& placed,
                          const Wanted& wanted) {
  const hocket::move_costs costs;
  std::size_t most = 0, of_first = 0;
  for (int rank = 0; rank < here.size(); ++rank) {
    const auto before = hocket::part_of<2>(sizes, placed, here.extents(), here.coordinates_of(rank));
    const auto after = hocket::part_of<2>(sizes, wanted, there.extents(), there.coordinates_of(rank));
    std::size_t common = 1;
    for (std::size_t d = 0; d < 2; ++d) {
      const std::size_t begin = std::max(before.begin[d], after.begin[d]);
      const std::size_t end = std::min(before.begin[d] + before.size[d], after.begin[d] + after.size[d]);
      common *= end > begin ? end - begin : 0;
    }
    most = std::max(most, after.volume() - common);
    if (rank == 0) of_first = after.volume();
  }
  const double copied = static_cast<double>(of_first) * sizeof(double) * costs.copy_per_byte;
  if (most == 0) return copied;
  return copied + costs.latency * static_cast<double>(std::bit_width(static_cast<unsigned>(here.size()) - 1)) +
         static_cast<double>(most) * sizeof(double) * costs.seconds_per_byte;
}

/// Compares the chosen sequence from `From` to `To` with all sequences through any placement, and runs it.
template <class From, class To>
void compare(thread_rank& me, const typename From::mesh_type& here, const typename To::mesh_type& there,
             const std::vector<two_sizes>& all_sizes) {
  constexpr auto own = hocket::detail::placement_array<typename From::placements_type>();
  constexpr auto wanted = hocket::detail::placement_array<typename To::placements_type>();
  for (const two_sizes& sizes : all_sizes) {
    const every_move<2> moves(sizes, here.extents(), sizeof(double));
    const auto& states = moves.states();
    std::array<hocket::placement, 2> start = own;
    for (auto& each : start) each = each.whole() ? replicated::value : each;
    const auto found_start = std::find(states.begin(), states.end(), start);
    const auto best_to = moves.find(static_cast<std::size_t>(found_start - states.begin()));
    double least = every_move<2>::impossible;
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i][0].partial() || states[i][1].partial()) continue;
      least = std::min(least, best_to[i].seconds + price_of_last_step(here, there, sizes, states[i], wanted));
    }

    From from(here, sizes);
    const auto value = [](const auto& at) { return static_cast<double>(at[0] * 100 + at[1]); };
    hocket::fill(from, value);
    const auto way = hocket::detail::cached_path<To>(from, there);
    const auto text = [&] {
      return to_text(own) + " to " + to_text(wanted) + " of " + std::to_string(sizes[0]) + " x " +
             std::to_string(sizes[1]) + " on " + std::to_string(here.size()) +
             " ranks: " + std::to_string(least * 1e6) + " us, not\n" + hocket::explain_redistribution<To>(from, there);
    };
    me.check(way.plan.possible && way.seconds() <= least * (1 + 1e-9) && way.seconds() >= least * (1 - 1e-9), text);

    const To made = hocket::redistribute<To>(from, there);
    double factor = 1;
    for (std::size_t a = 0; a < 2; ++a) factor *= own[a].partial() ? here.extents()[a] : 1;
    To expected(there, sizes);
    hocket::fill(expected, [&](const auto& at) { return factor * value(at); });
    me.check(std::equal(made.elements().begin(), made.elements().end(), expected.elements().begin()), text);
  }
}

template <class Here, class There>
void compare_all(thread_rank& me, const Here& here, const There& there) {
  const std::vector<two_sizes> sizes = {{8, 12}, {7, 5}, {1, 3}, {0, 5}, {300, 200}};
  const auto from = [&]<class First, class Second>(First, Second) {
    using from_type = tensor_here<Here, First, Second>;
    compare<from_type, tensor_there<There, shard<0>, shard<1>>>(me, here, there, sizes);
    compare<from_type, tensor_there<There, shard<1>, shard<1>>>(me, here, there, sizes);
    compare<from_type, tensor_there<There, shard<1>, replicated>>(me, here, there, sizes);
    compare<from_type, tensor_there<There, replicated, replicated>>(me, here, there, sizes);
  };
  from(sum_over_ranks(), sum_over_ranks());
  from(sum_over_ranks(), replicated());
  from(sum_over_ranks(), shard<0>());
  from(shard<1>(), sum_over_ranks());
  from(shard<0>(), shard<1>());
  from(replicated(), shard<1>());
}

}  // namespace

TEST_CASE("no sequence of moves to another mesh is cheaper than the chosen one") {
  on_ranks(4, [](thread_rank& me) {
    const auto here = hocket::mesh<"dp", "tp">(me.comm(), {2, 2});
    compare_all(me, here, hocket::mesh<"outer", "inner">(me.comm(), {2, 2}));
    compare_all(me, here, hocket::mesh<"outer", "inner">(me.comm(), {4, 1}));
  });
  on_ranks(6, [](thread_rank& me) {
    compare_all(me, hocket::mesh<"dp", "tp">(me.comm(), {2, 3}), hocket::mesh<"outer", "inner">(me.comm(), {3, 2}));
  });
}

TEST_CASE("a sequence of moves to another mesh is searched only once") {
  on_ranks(4, [](thread_rank& me) {
    const auto here = hocket::mesh<"dp", "tp">(me.comm(), {2, 2});
    const auto there = hocket::mesh<"outer", "inner">(me.comm(), {2, 2});
    using here_type = std::remove_const_t<decltype(here)>;
    const tensor_here<here_type, sum_over_ranks, shard<0>> x(here, {7, 5});
    const auto searches = [&] {
      hocket::redistribute<tensor_there<std::remove_const_t<decltype(there)>, shard<1>, shard<0>>>(x, there);
      return here.attributes().template get<hocket::detail::plan_cache<2, 2>>().searches();
    };
    const std::size_t first = searches();
    me.check(first > 0 && searches() == first, "the second call searched again");
  });
}
