// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// route_rows sends each row to the rank that the counts specify, in the order of ranks. The backward exchange, which is
// also the transpose, reverses this. All ranks refuse a number of rows that differs from the counts.
#include "support/thread_ranks.hpp"

#include <hocket/core/error.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/row_exchange.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using hocket::dynamic;
using hocket::extents;
using hocket::mesh;
using hocket::on;
using hocket::partial;
using hocket::replicated;
using hocket::shard;
using hocket::sum;
using hocket::varying;

namespace {

using sizes_type = std::array<std::size_t, 2>;

/// Returns how many rows `rank` sends to each rank: different numbers, and none to some ranks.
std::vector<std::size_t> rows_sent(int rank, int ranks, int seed) {
  std::vector<std::size_t> counts;
  for (int to = 0; to < ranks; ++to) counts.push_back(static_cast<std::size_t>((rank * 3 + to * 5 + seed) % 4));
  return counts;
}

/// Returns an element of a row, which encodes its sender, its receiver, its index and its column.
double mark(std::size_t from, std::size_t to, std::size_t number, std::size_t column) {
  return static_cast<double>(((from * 10 + to) * 10 + number) * 10 + column);
}

template <class Tensor>
void write_marks(Tensor& rows, int rank, const std::vector<std::size_t>& sent) {
  std::size_t row = 0;
  for (std::size_t to = 0; to < sent.size(); ++to) {
    for (std::size_t number = 0; number < sent[to]; ++number, ++row) {
      for (std::size_t column = 0; column < rows.part().size[1]; ++column) {
        rows.local()[{row, column}] = mark(static_cast<std::size_t>(rank), to, number, column);
      }
    }
  }
}

/// Returns whether `rank` has received the rows of rank 0, then those of rank 1, and so on.
template <class Tensor>
bool has_marks(const Tensor& rows, int rank, int ranks, int seed) {
  std::size_t row = 0;
  for (int from = 0; from < ranks; ++from) {
    const std::size_t count = rows_sent(from, ranks, seed)[static_cast<std::size_t>(rank)];
    for (std::size_t number = 0; number < count; ++number, ++row) {
      for (std::size_t column = 0; column < rows.part().size[1]; ++column) {
        const double wanted = mark(static_cast<std::size_t>(from), static_cast<std::size_t>(rank), number, column);
        if (rows.local()[{row, column}] != wanted) return false;
      }
    }
  }
  return row == rows.sizes()[0];
}

}  // namespace

TEST_CASE("rows are sent to the ranks that the counts specify, and back") {
  for (const int count : {1, 2, 3, 5, 7, 8}) {
    for (const int seed : {0, 1, 2, 3}) {
      on_ranks(count, [&](thread_rank& me) {
        const auto ranks = mesh<"ep">(me.comm(), {count});
        using mesh_type = std::remove_const_t<decltype(ranks)>;
        const std::vector<std::size_t> sent = rows_sent(me.rank(), count, seed);
        std::size_t own_rows = 0;
        for (const std::size_t each : sent) own_rows += each;
        hocket::tensor<double, extents<dynamic, 3>, mesh_type, on<"ep", varying>> rows(ranks, {own_rows});
        write_marks(rows, me.rank(), sent);

        const auto exchange = hocket::route_rows<"ep">(rows, sent);
        const auto arrived = exchange(rows);
        me.check(has_marks(arrived, me.rank(), count, seed), "arrived");
        const auto back = exchange.backward()(arrived);
        static_assert(std::is_same_v<decltype(back), const std::remove_const_t<decltype(rows)>>);
        me.check(back.sizes() == rows.sizes(), "rows back");
        me.check(std::ranges::equal(back.elements(), rows.elements()), "back");

        const auto known = hocket::route_rows<"ep">(rows, sent, exchange.received());
        me.check(std::ranges::equal(known(rows).elements(), arrived.elements()), "counts that are known");
      });
    }
  }
}

TEST_CASE("slices are routed to the ranks of the experts, and become slices again") {
  for (const int count : {1, 2, 3, 5}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"ep">(me.comm(), {count});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      using tokens = hocket::tensor<float, extents<dynamic, dynamic>, mesh_type, on<"ep", shard<0>>>;
      tokens x(ranks, {7, 2});  // the last ranks have fewer, or none
      hocket::fill(x, [](const sizes_type& at) { return static_cast<float>(at[0] * 10 + at[1]); });
      std::vector<std::size_t> sent(static_cast<std::size_t>(count));
      sent[static_cast<std::size_t>(me.rank() / 2)] = x.part().size[0];

      const auto to_experts = hocket::route_rows<"ep">(x, sent);
      const auto routed = to_experts(x);
      static_assert(std::is_same_v<typename decltype(routed)::placement_on<"ep">, varying>);
      if (2 * me.rank() >= count) me.check(routed.elements().empty(), "a rank sent to the upper half");
      if (me.rank() == 0) {
        const std::size_t first_two = 2 * ((7 + static_cast<std::size_t>(count) - 1) / static_cast<std::size_t>(count));
        me.check(routed.sizes()[0] == std::min<std::size_t>(7, count == 1 ? 7 : first_two), "rows of two ranks");
      }
      const auto y = to_experts.backward()(routed);
      static_assert(std::is_same_v<decltype(y), const tokens>);
      me.check(y.sizes() == x.sizes() && std::ranges::equal(x.elements(), y.elements()), "slices again");
    });
  }
}

TEST_CASE("rows are exchanged along one axis for several placements along the other") {
  on_ranks(4, [](thread_rank& me) {
    const auto ranks = mesh<"ep", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const int rank = ranks.coordinates()[0];
    const auto check = [&]<class Placement>(Placement) {
      hocket::tensor<double, extents<dynamic, 5>, mesh_type, on<"ep", varying>, on<"tp", Placement>> rows(ranks, {3});
      write_marks(rows, rank, {2, 1});
      const auto exchange = hocket::route_rows<"ep">(rows, {2, 1});
      const auto arrived = exchange(rows);
      me.check(arrived.sizes()[0] == (rank == 0 ? 4 : 2), "rows");
      me.check(arrived.part().size[1] == rows.part().size[1], "columns");
      me.check(
          arrived.local()[{arrived.sizes()[0] - 1, 0}] == mark(1, static_cast<std::size_t>(rank), rank == 0 ? 1 : 0, 0),
          "the last row is rank 1's");
      me.check(std::ranges::equal(exchange.backward()(arrived).elements(), rows.elements()), "back");
    };
    check(shard<1>());
    check(replicated());
    check(partial<sum>());
  });
}

TEST_CASE("all ranks refuse rows if their number differs from the counts on one rank") {
  for (const int wrong : {0, 1}) {
    on_ranks(2, [&](thread_rank& me) {
      const auto ranks = mesh<"ep">(me.comm(), {2});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      hocket::tensor<double, extents<dynamic, 3>, mesh_type, on<"ep", varying>> rows(ranks, {4});
      const std::size_t own = me.rank() == wrong ? 3 : 2;
      const auto exchange = hocket::route_rows<"ep">(rows, {own, 2});
      std::string words;
      try {
        static_cast<void>(exchange(rows));
      } catch (const hocket::error& caught) {
        words = caught.what();
      }
      me.check(!words.empty(), "no error");
      if (me.rank() == wrong) me.check(words.find("15") != std::string::npos, words.c_str());
    });
  }
}

TEST_CASE("ranks with rows of different lengths get a mismatch") {
  on_ranks(2, [&](thread_rank& me) {
    const auto ranks = mesh<"ep">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using rows_type = hocket::tensor<double, extents<dynamic, dynamic>, mesh_type, on<"ep", varying>>;
    const rows_type rows(ranks, {2, me.rank() == 0 ? 6 : 3});
    const auto exchange = hocket::route_rows<"ep">(rows, {1, 1});
    bool refused = false;
    try {
      static_cast<void>(exchange(rows));
    } catch (const hocket::error& caught) {
      refused = caught.code() == hocket::errc::mismatch;
    }
    me.check(refused, "no mismatch");
  });
}
