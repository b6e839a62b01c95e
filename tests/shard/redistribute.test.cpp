// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// redistribute gives exact results for every legal pair of placements, along one axis of 1 to 8 ranks and along two
// axes, for sizes that are multiples of the number of ranks, others, smaller ones, and 0.
#include "shard/every_placement.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/redistribute.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace hocket_test;
using hocket::axis;
using hocket::dynamic;
using hocket::extents;
using hocket::invariant;
using hocket::mesh;
using hocket::on;
using hocket::partial;
using hocket::placement;
using hocket::replicated;
using hocket::shard;
using hocket::sum;
using hocket::varying;

namespace {

using sizes_type = std::array<std::size_t, 2>;

constexpr auto value_at = [](const auto& at) {
  std::size_t value = 0;
  for (const std::size_t each : at) value = value * 1000 + each;
  return static_cast<double>(value + 1);
};

double ranks_value(const sizes_type& at, int rank) { return static_cast<double>(at[0] * 10 + at[1]) * (rank + 1); }

/// Returns the index in the whole of the element at `at` of a part.
template <std::size_t Rank>
std::array<std::size_t, Rank> in_whole(const hocket::box<Rank>& part, std::array<std::size_t, Rank> at) {
  for (std::size_t d = 0; d < Rank; ++d) at[d] += part.begin[d];
  return at;
}

/// Returns this rank's data of a tensor whose element at `at` is `value_at(at)`, or summands of that if it is partial.
template <class Mesh, std::size_t Rank, std::size_t Axes>
std::vector<double> placed_data(const Mesh& ranks, const std::array<std::size_t, Rank>& sizes,
                                const std::array<placement, Axes>& placed) {
  int summand = 0;
  int summands = 1;
  for (std::size_t a = 0; a < Axes; ++a) {
    if (!placed[a].partial()) continue;
    summand = summand * ranks.extents()[a] + ranks.coordinates()[a];
    summands *= ranks.extents()[a];
  }
  const auto part = hocket::part_of<Rank>(sizes, placed, ranks.extents(), ranks.coordinates());
  std::vector<double> data;
  hocket::for_each_index(part.size, [&](const auto& at) {
    const auto whole = in_whole(part, at);
    const auto other = [&](int of) { return static_cast<double>((whole.front() * 7 + whole.back() * 3) % 11) * of; };
    double value = other(summand);
    if (summand == 0) {
      value = value_at(whole);
      for (int each = 1; each < summands; ++each) value -= other(each);
    }
    data.push_back(value);
  });
  return data;
}

/// Returns whether `data` are this rank's data with this placement. Sums partial results over the ranks with summands.
template <class Mesh, std::size_t Rank, std::size_t Axes>
bool is_device_buffer(const Mesh& ranks, const std::array<std::size_t, Rank>& sizes,
                      const std::array<placement, Axes>& placed, std::vector<double> data) {
  hocket::detail::axis_set partial_axes = 0;
  for (std::size_t a = 0; a < Axes; ++a) partial_axes |= placed[a].partial() ? 1U << a : 0U;
  if (partial_axes != 0) hocket::all_reduce(ranks.along(partial_axes), hocket::in_place(data));
  const auto part = hocket::part_of<Rank>(sizes, placed, ranks.extents(), ranks.coordinates());
  bool right = data.size() == part.volume();
  std::size_t next = 0;
  hocket::for_each_index(part.size,
                         [&](const auto& at) { right = right && data[next++] == value_at(in_whole(part, at)); });
  return right;
}

/// Redistributes between all legal pairs of placements, or each `step`-th, on one mesh and for one size, and compares
/// the results with `value_at`.
template <class Mesh, std::size_t Rank>
void redistribute_every_pair(thread_rank& me, const Mesh& ranks, const std::array<std::size_t, Rank>& sizes,
                             std::size_t step = 1) {
  constexpr auto axes = static_cast<std::size_t>(Mesh::dimensions);
  const hocket::options<> none;
  const auto site = std::source_location::current();
  std::size_t number = 0;
  for (const auto& from : placements_over<axes, Rank>()) {
    for (const auto& to : placements_over<axes, Rank>()) {
      if (!legal(from, to) || number++ % step != 0) continue;
      me.at([&] { return to_text(from) + " to " + to_text(to) + " of " + text_of(sizes, ranks.extents()); });
      const auto plan = hocket::plan_redistribution(sizes, ranks.extents(), from, to, sizeof(double));
      if (!me.check(plan.possible, "no sequence of moves was found")) continue;
      std::vector<double> data = placed_data(ranks, sizes, from);
      std::vector<double> out(hocket::part_of<Rank>(sizes, to, ranks.extents(), ranks.coordinates()).volume());
      hocket::detail::redistributing<double, Rank, Mesh, partial<sum>, hocket::options<>> work(
          ranks, sizes, from, data.data(), out.data(), 0, none, site);
      work.run_all(plan);
      me.check(is_device_buffer(ranks, sizes, to, plan.size == 0 ? data : out), "wrong elements");
    }
  }
}

/// Sizes that are multiples of the numbers of ranks, differ from these by one, are smaller than them, or 0.
const std::vector<sizes_type> every_size{{12, 24}, {13, 23}, {1, 3}, {2, 1}, {0, 5}, {4, 0}};

}  // namespace

TEST_CASE("redistributions between all pairs of placements along one axis are exact") {
  for (int count = 1; count <= 8; ++count) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"tp">(me.comm(), {count});
      for (const sizes_type& sizes : every_size) redistribute_every_pair(me, ranks, sizes);
    });
  }
}

TEST_CASE("redistributions between all pairs of placements along two axes are exact") {
  for (const auto& extents_of_mesh : std::vector<std::vector<int>>{{2, 2}, {2, 3}, {2, 4}, {3, 2}}) {
    on_ranks(extents_of_mesh[0] * extents_of_mesh[1], [&](thread_rank& me) {
      const auto ranks = mesh<"dp", "tp">(me.comm(), extents_of_mesh);
      for (const sizes_type& sizes : every_size) redistribute_every_pair(me, ranks, sizes);
    });
  }
}

TEST_CASE("redistributions of tensors with one and three dimensions are exact for all pairs of placements") {
  using line = std::array<std::size_t, 1>;
  using cube = std::array<std::size_t, 3>;
  for (const int count : {1, 3, 4}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"tp">(me.comm(), {count});
      for (const line& sizes : {line{12}, line{13}, line{2}, line{0}}) redistribute_every_pair(me, ranks, sizes);
      for (const cube& sizes : {cube{4, 12, 3}, cube{5, 3, 7}, cube{1, 2, 1}, cube{3, 0, 4}}) {
        redistribute_every_pair(me, ranks, sizes);
      }
    });
  }
  on_ranks(6, [](thread_rank& me) {
    const auto ranks = mesh<"dp", "tp">(me.comm(), {2, 3});
    for (const line& sizes : {line{12}, line{13}, line{2}, line{0}}) redistribute_every_pair(me, ranks, sizes);
    for (const cube& sizes : {cube{5, 3, 7}, cube{1, 4, 2}}) redistribute_every_pair(me, ranks, sizes);
  });
}

TEST_CASE("redistributions between pairs of placements along three axes are exact") {
  on_ranks(8, [](thread_rank& me) {
    const auto ranks = mesh<"dp", "pp", "tp">(me.comm(), {2, 2, 2});
    redistribute_every_pair(me, ranks, sizes_type{9, 7}, 5);
    redistribute_every_pair(me, ranks, sizes_type{8, 3}, 7);
    redistribute_every_pair(me, ranks, std::array<std::size_t, 1>{13}, 3);
  });
}

// The compiler knows the extents, but there are too many sequences for it to search.
TEST_CASE("a sharded and partial tensor on 16 ranks along four axes is redistributed exactly") {
  on_ranks(16, [](thread_rank& me) {
    const auto ranks = mesh<axis("a", 2), axis("b", 2), axis("c", 2), axis("d", 2)>(me.comm());
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using cut_and_summed = hocket::tensor<double, extents<5, 4, 6>, mesh_type, on<"a", partial<sum>>, on<"b", shard<0>>,
                                          on<"c", partial<sum>>, on<"d", shard<1>>>;
    static_assert(!hocket::detail::searches_at_compile_time<cut_and_summed>());
    cut_and_summed x(ranks);
    hocket::fill(x, [](const auto& at) { return value_at(at) / 4; });
    const auto y = hocket::redistribute<on<"a", shard<1>>, on<"b", shard<2>>, on<"c", shard<1>>, on<"d", shard<0>>>(x);
    hocket::for_each_index(y.part().size, [&](const auto& at) {
      me.check(y.local()[at] == value_at(in_whole(y.part(), at)), "wrong element");
    });
  });
}

namespace {

/// Redistributes slices to sums, and compares the sum over the ranks with the whole; `Mesh` and `Extents` determine
/// whether the compiler plans it. Checks whether a rank has sent or read anything.
template <class Extents, class Dp, class Tp, class ToDp, class ToTp, class Mesh>
void make_sums(thread_rank& me, const Mesh& ranks, bool communicates, const char* what) {
  me.at([&] { return what; });
  hocket::tensor<double, Extents, Mesh, on<"dp", Dp>, on<"tp", Tp>> x = [&] {
    if constexpr (Extents::dynamic_rank == 0) {
      return decltype(x)(ranks);
    } else {
      return decltype(x)(ranks, {7});
    }
  }();
  hocket::fill(x, value_at);
  const auto bytes = [&] {
    const auto& all = ranks.all().traffic();
    const auto& dp = ranks.template along<"dp">().traffic();
    const auto& tp = ranks.template along<"tp">().traffic();
    return all.sent + all.read + dp.sent + dp.read + tp.sent + tp.read;
  };
  const auto before = bytes();
  const auto sums = hocket::redistribute<on<"dp", ToDp>, on<"tp", ToTp>>(x);
  if (!communicates) me.check(bytes() == before, "slices were sent");
  const auto whole = hocket::redistribute<hocket::elsewhere<replicated>>(sums);
  hocket::for_each_index(whole.part().size,
                         [&](const auto& at) { me.check(whole.local()[at] == value_at(at), "wrong sum"); });
}

template <class Extents, class Mesh>
void make_all_sums(thread_rank& me, const Mesh& ranks) {
  using sums = partial<sum>;
  make_sums<Extents, shard<0>, replicated, sums, replicated>(me, ranks, false, "S0R to PR");
  make_sums<Extents, replicated, shard<1>, sums, sums>(me, ranks, false, "RS1 to PP");
  make_sums<Extents, shard<0>, shard<0>, sums, sums>(me, ranks, false, "S0S0 to PP");
  make_sums<Extents, shard<0>, shard<1>, sums, shard<1>>(me, ranks, false, "S0S1 to PS1");
  make_sums<Extents, shard<1>, shard<1>, shard<1>, sums>(me, ranks, false, "S1S1 to S1P");
  make_sums<Extents, shard<0>, shard<0>, sums, shard<0>>(me, ranks, true, "S0S0 to PS0");
  make_sums<Extents, shard<1>, shard<1>, sums, shard<1>>(me, ranks, true, "S1S1 to PS1");
}

}  // namespace

TEST_CASE("slices become sums, without communication if they are within the new parts") {
  on_ranks(4, [](thread_rank& me) {
    make_all_sums<extents<7, 5>>(me, mesh<axis("dp", 2), axis("tp", 2)>(me.comm()));
    make_all_sums<extents<dynamic, 5>>(me, mesh<"dp", "tp">(me.comm(), {2, 2}));
  });
}

TEST_CASE("redistributions planned at compile time and at run time give the same results") {
  on_ranks(6, [](thread_rank& me) {
    const auto known = mesh<axis("dp", 2), axis("tp", 3)>(me.comm());
    using known_mesh = std::remove_const_t<decltype(known)>;
    hocket::tensor<double, extents<7, 5>, known_mesh, on<"dp", invariant>, on<"tp", shard<0>>> x(known);
    hocket::fill(x, value_at);
    static_assert(hocket::detail::searches_at_compile_time<decltype(x)>());

    const auto open = mesh<"dp", "tp">(me.comm(), {2, 3});
    using open_mesh = std::remove_const_t<decltype(open)>;
    hocket::tensor<double, extents<dynamic, 5>, open_mesh, on<"dp", invariant>, on<"tp", shard<0>>> y(open, {7});
    hocket::fill(y, value_at);
    static_assert(!hocket::detail::searches_at_compile_time<decltype(y)>());

    const auto same = [&](const auto& a, const auto& b, const char* what) {
      me.check(a.part() == b.part(), what);
      me.check(std::equal(a.elements().begin(), a.elements().end(), b.elements().begin(), b.elements().end()), what);
      hocket::for_each_index(a.part().size, [&](const sizes_type& at) {
        const sizes_type whole{at[0] + a.part().begin[0], at[1] + a.part().begin[1]};
        me.check(a.local()[at] == value_at(whole), what);
      });
    };
    same(hocket::redistribute<on<"tp", shard<1>>>(x), hocket::redistribute<on<"tp", shard<1>>>(y), "S0 to S1");
    same(hocket::redistribute<on<"dp", shard<0>>>(x), hocket::redistribute<on<"dp", shard<0>>>(y), "nested");
    same(hocket::redistribute<hocket::elsewhere<replicated>>(x), hocket::redistribute<hocket::elsewhere<replicated>>(y),
         "replicated");
    same(hocket::redistribute<on<"tp", invariant>, on<"dp", shard<1>>>(x),
         hocket::redistribute<on<"tp", invariant>, on<"dp", shard<1>>>(y), "both");
  });
}

TEST_CASE("a requirement on sums holds if other moves precede or follow the reduction") {
  for (const int count : {2, 4}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"dp", "tp">(me.comm(), {2, count / 2});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      hocket::tensor<float, extents<dynamic, 5>, mesh_type, on<"dp", shard<0>>, on<"tp", partial<sum>>> x(ranks, {7});
      hocket::fill(
          x, [&](const auto& at) { return static_cast<float>(value_at(at)) / 3 * static_cast<float>(me.rank() + 1); });
      const auto exact = hocket::with(hocket::require(hocket::rank_count_invariant));
      const auto converted = hocket::convert<"tp", replicated>(hocket::copy(x), exact);
      const auto expected = hocket::redistribute<on<"dp", replicated>>(converted);
      const auto same = [&](const auto& y) {
        hocket::for_each_index(y.part().size, [&](const auto& at) {
          me.check(y.local()[at] == expected.local()[in_whole(y.part(), at)], "other bits");
        });
      };
      same(hocket::redistribute<on<"dp", replicated>, on<"tp", replicated>>(x, exact));
      same(hocket::redistribute<on<"dp", replicated>, on<"tp", shard<1>>>(x, exact));
      const auto line = mesh<"all">(me.comm(), {count});
      using rows = hocket::tensor<float, extents<dynamic, 5>, std::remove_const_t<decltype(line)>, on<"all", shard<0>>>;
      same(hocket::redistribute<rows>(x, line, exact));
    });
  }
}

TEST_CASE("a tensor is redistributed to another mesh of the same ranks") {
  on_ranks(6, [](thread_rank& me) {
    const auto training = mesh<"dp", "tp">(me.comm(), {2, 3});
    const auto storage = mesh<"fsdp", "replica">(me.comm(), {3, 2});
    using training_mesh = std::remove_const_t<decltype(training)>;
    using storage_mesh = std::remove_const_t<decltype(storage)>;
    using stored =
        hocket::tensor<double, extents<dynamic, 5>, storage_mesh, on<"fsdp", shard<0>>, on<"replica", invariant>>;
    using used = hocket::tensor<double, extents<dynamic, 5>, training_mesh, on<"dp", replicated>, on<"tp", shard<1>>>;
    for (const std::size_t rows : {std::size_t{7}, std::size_t{6}, std::size_t{1}, std::size_t{0}}) {
      stored x(storage, {rows});
      hocket::fill(x, value_at);
      const auto y = hocket::redistribute<used>(x, training);
      used expected(training, {rows});
      hocket::fill(expected, value_at);
      me.check(std::equal(y.elements().begin(), y.elements().end(), expected.elements().begin()), "there");

      // Gradients are returned as summands along dp.
      hocket::gradient_t<used> gradient(training, {rows});
      hocket::fill(gradient, [&](const sizes_type& at) { return ranks_value(at, me.rank() / 3); });
      using summed =
          hocket::tensor<double, extents<dynamic, 5>, storage_mesh, on<"fsdp", shard<0>>, on<"replica", replicated>>;
      const auto back = hocket::redistribute<summed>(gradient, storage);
      hocket::for_each_index(back.part().size, [&](const sizes_type& at) {
        const sizes_type whole{at[0] + back.part().begin[0], at[1] + back.part().begin[1]};
        me.check(back.local()[at] == ranks_value(whole, 0) + ranks_value(whole, 1), "back");
      });
    }
    const auto half = hocket::split(me.comm(), hocket::color{me.rank() / 3});
    const auto smaller = mesh<"dp", "tp">(half, {1, 3});
    me.expect(hocket::errc::invalid_argument, [&] {
      const stored x(storage, {std::size_t{4}});
      hocket::redistribute<used>(x, smaller);
    });
  });
}

TEST_CASE("a redistribution to another mesh refuses a tensor type with other extents") {
  on_ranks(2, [](thread_rank& me) {
    const auto here = mesh<"a">(me.comm(), {2});
    const auto there = mesh<"b">(me.comm(), {2});
    using here_mesh = std::remove_const_t<decltype(here)>;
    using there_mesh = std::remove_const_t<decltype(there)>;
    const hocket::tensor<double, extents<dynamic>, here_mesh, on<"a", shard<0>>> x(here, {20000});
    using smaller = hocket::tensor<double, extents<8>, there_mesh, on<"b", replicated>>;
    const auto found = me.expect(hocket::errc::invalid_argument, [&] { hocket::redistribute<smaller>(x, there); });
    me.check(found && std::string(found->what())
                              .find("extent 0 is 20000, but the type of the tensor on the other mesh requires 8") !=
                          std::string::npos,
             "the message lacks the extents");
    using as_large = hocket::tensor<double, extents<20000>, there_mesh, on<"b", replicated>>;
    me.check(hocket::redistribute<as_large>(x, there).elements().size() == 20000, "the same extents are accepted");
  });
}

TEST_CASE("redistributions along other axes do not change varying data") {
  // Large enough that slices would be cheaper if the varying data were copies.
  using square = std::array<std::size_t, 2>;
  constexpr square sizes{1024, 1024};
  constexpr hocket::placement varies{hocket::placement_kind::varying};
  constexpr hocket::placement sums{hocket::placement_kind::partial_sum};
  constexpr hocket::placement copies{hocket::placement_kind::replicated};
  const auto plan = hocket::plan_redistribution<2, 2>(sizes, {2, 4}, {varies, sums}, {varies, copies}, 4);
  CHECK(plan.possible);
  for (std::size_t i = 0; i < plan.size; ++i) CHECK(plan.moves[i].along == 2);

  on_ranks(8, [&](thread_rank& me) {
    const auto ranks = mesh<"dp", "tp">(me.comm(), {2, 4});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<float, extents<dynamic, dynamic>, mesh_type, on<"dp", varying>, on<"tp", partial<sum>>> x(ranks,
                                                                                                             sizes);
    const float own = ranks.template coordinate<"dp">() == 0 ? 1.F : 100.F;
    for (float& each : x.elements()) each = own;
    const auto y = hocket::redistribute<on<"tp", replicated>>(x);
    std::size_t wrong = 0;
    for (const float each : y.elements()) wrong += each != 4 * own;
    me.check(wrong == 0, [&] { return std::to_string(wrong) + " elements are wrong"; });
  });
}

TEST_CASE("means that are redistributed to another mesh are correct and have the right count") {
  on_ranks(6, [](thread_rank& me) {
    const auto training = mesh<"dp", "tp">(me.comm(), {2, 3});
    const auto storage = mesh<"fsdp">(me.comm(), {6});
    using training_mesh = std::remove_const_t<decltype(training)>;
    using storage_mesh = std::remove_const_t<decltype(storage)>;
    using means =
        hocket::tensor<double, extents<7, 5>, training_mesh, on<"dp", partial<hocket::mean>>, on<"tp", shard<1>>>;
    using stored = hocket::tensor<double, extents<7, 5>, storage_mesh, on<"fsdp", shard<0>>>;
    const double own_count = me.rank() < 3 ? 1 : 3;
    means x(training);
    hocket::fill(x, [&](const auto& at) { return value_at(at) * (me.rank() < 3 ? 4 : 8); });
    x.set_count(own_count);
    const auto y = hocket::redistribute<stored>(std::move(x), storage);
    me.check(y.count() == 4, "count");
    hocket::for_each_index(y.part().size, [&](const sizes_type& at) {
      me.check(std::abs(y.local()[at] - 7 * value_at(in_whole(y.part(), at))) < 1e-6, "mean");
    });
  });
}

TEST_CASE("conversions and redistributions of a mean of no elements give NaN, also on one rank") {
  for (const int count : {1, 2, 3}) {
    on_ranks(count, [&](thread_rank& me) {
      const auto ranks = mesh<"dp">(me.comm(), {count});
      const auto storage = mesh<"fsdp">(me.comm(), {count});
      using mesh_type = std::remove_const_t<decltype(ranks)>;
      using storage_mesh = std::remove_const_t<decltype(storage)>;
      const auto of_nothing = [&] {
        hocket::tensor<double, extents<5>, mesh_type, on<"dp", partial<hocket::mean>>> x(ranks);
        hocket::fill(x, [](const auto&) { return 0.0; });
        x.set_count(0);
        return x;
      };
      const auto is_no_number = [&](const auto& y, const char* what) {
        for (const double each : y.elements()) me.check(std::isnan(each), what);
      };
      is_no_number(hocket::convert<"dp", replicated>(of_nothing()), "converted");
      is_no_number(hocket::redistribute<on<"dp", replicated>>(of_nothing()), "on all ranks");
      is_no_number(hocket::redistribute<on<"dp", shard<0>>>(of_nothing()), "in parts");
      using stored = hocket::tensor<double, extents<5>, storage_mesh, on<"fsdp", shard<0>>>;
      is_no_number(hocket::redistribute<stored>(of_nothing(), storage), "on another mesh");
    });
  }
}

struct colour {
  unsigned char red = 0;
  unsigned char green = 0;
  unsigned char blue = 0;
  friend bool operator==(const colour&, const colour&) = default;
};

enum class label : unsigned char {};

/// Redistributes a tensor with run-time extents whose element number n is `make(n)`.
template <class T, class Make>
void move_what_cannot_be_added(thread_rank& me, int count, Make make) {
  const auto ranks = mesh<"tp">(me.comm(), {count});
  using mesh_type = std::remove_const_t<decltype(ranks)>;
  const auto element = [&](const sizes_type& at) { return make(static_cast<unsigned char>(at[0] * 3 + at[1])); };
  hocket::tensor<T, extents<dynamic, 3>, mesh_type, on<"tp", shard<0>>> rows(ranks, {5});
  hocket::fill(rows, element);
  const auto check = [&](const auto& y, const char* what) {
    hocket::for_each_index(
        y.part().size, [&](const sizes_type& at) { me.check(y.local()[at] == element(in_whole(y.part(), at)), what); });
  };
  const auto columns = hocket::redistribute<on<"tp", shard<1>>>(rows);
  check(columns, "columns");
  check(hocket::redistribute<on<"tp", replicated>>(columns), "whole");
  check(hocket::redistribute<on<"tp", shard<0>>>(hocket::redistribute<on<"tp", invariant>>(rows)), "rows");
}

TEST_CASE("elements that can't be added can be redistributed if no placement is partial") {
  for (const int count : {1, 2, 3}) {
    on_ranks(count, [&](thread_rank& me) {
      move_what_cannot_be_added<std::byte>(me, count, [](unsigned char n) { return std::byte{n}; });
      move_what_cannot_be_added<label>(me, count, [](unsigned char n) { return label{n}; });
      move_what_cannot_be_added<colour>(me, count, [](unsigned char n) { return colour{n, 1, 2}; });
    });
  }
}

TEST_CASE("a redistribution that moves no elements reuses the storage of a moved tensor") {
  on_ranks(2, [](thread_rank& me) {
    const auto ranks = mesh<"tp">(me.comm(), {2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    hocket::tensor<double, extents<4, 3>, mesh_type, on<"tp", invariant>> x(ranks);
    const double* const data = x.elements().data();
    const auto y = hocket::redistribute<on<"tp", replicated>>(std::move(x));
    me.check(y.elements().data() == data, "copied");
  });
}

TEST_CASE("explain_redistribution names the collectives, axes, bytes and time of a plan") {
  std::string text;
  on_ranks(4, [&](thread_rank& me) {
    const auto ranks = mesh<"dp", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const hocket::tensor<float, extents<64, 64>, mesh_type, on<"dp", partial<sum>>, on<"tp", shard<0>>> x(ranks);
    if (me.rank() == 0) text = hocket::explain_redistribution<on<"dp", replicated>, on<"tp", shard<1>>>(x);
  });
  CHECK(text.find("2 collectives") != std::string::npos);
  CHECK(text.find("along dp") != std::string::npos);
  CHECK(text.find(" bytes") != std::string::npos);
  CHECK(text.find(" us") != std::string::npos);
}
