// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compares a redistribution with its plan: which collectives it calls, on which communicators, and how many bytes ranks
// receive. The numbers come from traced endpoints and from the records of the communicators.
#include "shard/every_placement.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/engine/flight_record.hpp>
#include <hocket/group/adapted.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/redistribute.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using hocket::dynamic;
using hocket::extents;
using hocket::mesh;
using hocket::move_kind;
using hocket::on;
using hocket::placement;
using hocket::shard;

namespace {

using sizes_type = std::array<std::size_t, 2>;

/// The number of collectives that a rank has called on a communicator, and the name of the last one.
struct calls_so_far {
  long count = 0;
  std::string last;
};

template <class Comm>
calls_so_far calls_on(const Comm& comm) {
  const std::string record = hocket::flight_record(comm);
  const std::string call = "{\"call\":";
  const std::string operation = "\"operation\":\"";
  const std::size_t line = record.rfind(call);
  if (line == std::string::npos) return {};
  const std::size_t name = record.find(operation, line) + operation.size();
  return {std::strtol(record.c_str() + line + call.size(), nullptr, 10),
          record.substr(name, record.find('"', name) - name)};
}

/// Returns the number of calls on all communicators of a mesh.
template <class Mesh>
long calls_on_all(const Mesh& ranks) {
  long total = 0;
  std::vector<const void*> seen;
  for (hocket::detail::axis_set set = 1; set <= Mesh::axes::whole; ++set) {
    const auto& comm = ranks.along(set);
    if (std::find(seen.begin(), seen.end(), &comm) != seen.end()) continue;
    seen.push_back(&comm);
    total += calls_on(comm).count;
  }
  return total;
}

/// Returns the bytes that the steps in a trace received from other ranks, in a collective among `ranks`.
double bytes_received(std::string_view events, std::size_t ranks) {
  double total = 0;
  while (!events.empty()) {
    const std::string_view line = events.substr(0, events.find('\n'));
    events.remove_prefix(std::min(events.size(), line.size() + 1));
    const std::string_view step = line.substr(std::min(line.size(), std::string_view("{\"name\":\"").size()));
    const std::string_view bytes = "\"bytes\":";
    const std::size_t at = line.find(bytes);
    if (at == std::string_view::npos || !(step.starts_with("receive") || step.starts_with("load"))) continue;
    const auto others = static_cast<double>(ranks - 1);  // one load_reduce reads the data of all
    total += std::strtod(line.data() + at + bytes.size(), nullptr) * (step.starts_with("load_reduce") ? others : 1);
  }
  return total;
}

std::string expected_name(move_kind kind) {
  switch (kind) {
    case move_kind::gather_to_all: return "all_gather";
    case move_kind::exchange: return "all_to_all";
    case move_kind::reduce_to_all: return "all_reduce";
    case move_kind::reduce_to_slices: return "reduce_scatter";
    default: return "nothing";
  }
}

/// Runs each move of all plans between two placements, or of each `step`-th plan, and compares its collectives and
/// bytes with the plan.
template <std::size_t Axes, class MakeMesh>
void compare_every_move(thread_rank& me, const std::array<int, Axes>& mesh_extents, const sizes_type& sizes,
                        MakeMesh make_mesh, std::size_t step = 1) {
  std::size_t pairs = 0;
  const hocket::options<> none;
  const auto site = std::source_location::current();
  const std::vector<int> extents(mesh_extents.begin(), mesh_extents.end());
  const auto plain = make_mesh(me.comm(), extents);
  for (const auto& from : placements_over<Axes, 2>()) {
    // A separate trace, because a long one takes long to read.
    const auto comm = hocket::traced(me.comm());
    const auto ranks = make_mesh(comm, extents);
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    const auto& log = *hocket::detail::communicator_access::state(comm).domain()->shared();
    for (const auto& to : placements_over<Axes, 2>()) {
      if (!legal(from, to) || pairs++ % step != 0) continue;
      me.at([&] { return to_text(from) + " to " + to_text(to) + " of " + text_of(sizes, mesh_extents); });
      const auto plan = hocket::plan_redistribution(sizes, mesh_extents, from, to, sizeof(double));
      const auto volume = [&](const auto& placed) {
        return hocket::part_of<2>(sizes, placed, ranks.extents(), ranks.coordinates()).volume();
      };
      std::vector<double> data(volume(from));
      std::vector<double> out(volume(to));
      hocket::detail::redistributing<double, 2, mesh_type, hocket::partial<hocket::sum>, hocket::options<>> work(
          ranks, sizes, from, data.data(), out.data(), 0, none, site);
      for (std::size_t i = 0; i < plan.size; ++i) {
        const auto& move = plan.moves[i];
        const long before = calls_on_all(ranks);
        const std::size_t traced = log.events().size();
        work.run(move, i + 1 == plan.size);
        const long made = calls_on_all(ranks) - before;
        const std::string what = "move " + std::to_string(i) + ", " + to_string(move.kind) + ": ";
        me.check(made == (communicates(move.kind) ? 1 : 0),
                 [&] { return what + std::to_string(made) + " collectives"; });
        const std::string events = log.events();
        const std::size_t peers =
            communicates(move.kind) ? static_cast<std::size_t>(ranks.along(move.along).size()) : 1;
        double received = bytes_received(std::string_view(events).substr(traced), peers);
        if (!communicates(move.kind)) {
          me.check(received == 0, [&] { return what + "something was received"; });
          continue;
        }
        const std::string name = calls_on(ranks.along(move.along)).last;
        const std::string expected = expected_name(move.kind);
        me.check(name == expected || name == expected + "_v", [&] { return what + "calls " + name; });
        // The bytes of the group that receives most.
        double most = 0;
        hocket::all_reduce(plain.along(move.along), hocket::in_place(std::span(&received, 1)));
        hocket::all_reduce(plain.all(), std::span<const double>(&received, 1), std::span(&most, 1), hocket::maximum());
        const auto planned = static_cast<double>(move.elements * sizeof(double));
        // An all_reduce of few elements needs fewer rounds and more bytes.
        const bool as_planned = move.kind == move_kind::reduce_to_all ? most >= planned : most == planned;
        me.check(as_planned, [&] {
          return what + name + " " + std::to_string(most) + " bytes instead of " + std::to_string(planned);
        });
      }
    }
  }
}

}  // namespace

TEST_CASE("redistributions along two axes call the collectives and receive the bytes of their plans") {
  const std::vector<sizes_type> some_sizes{{12, 24}, {7, 5}, {1, 3}, {0, 5}};
  const auto make_mesh = [](const auto& comm, const auto& extents) { return mesh<"dp", "tp">(comm, extents); };
  for (const std::array<int, 2>& mesh_extents :
       {std::array{2, 2}, std::array{2, 3}, std::array{2, 4}, std::array{3, 2}}) {
    for (const sizes_type& sizes : some_sizes) {
      // Six and eight ranks take long on few cores.
      const std::size_t coarse = mesh_extents[1] == 4 ? 7 : mesh_extents == std::array{2, 2} ? 1 : 3;
      const std::size_t step = sizes == sizes_type{7, 5} ? 1 : coarse;
      on_ranks(mesh_extents[0] * mesh_extents[1],
               [&](thread_rank& me) { compare_every_move(me, mesh_extents, sizes, make_mesh, step); });
    }
  }
}

TEST_CASE("redistributions along one axis of 1 to 8 ranks call the collectives and receive the bytes of their plans") {
  const auto make_mesh = [](const auto& comm, const auto& extents) { return mesh<"tp">(comm, extents); };
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const sizes_type& sizes : std::vector<sizes_type>{{24, 48}, {7, 9}, {1, 3}, {0, 5}}) {
      on_ranks(ranks, [&](thread_rank& me) { compare_every_move(me, std::array{ranks}, sizes, make_mesh); });
    }
  }
}

TEST_CASE("a redistribution to another mesh calls no collective if each rank already has its part") {
  on_ranks(4, [](thread_rank& me) {
    const auto here = mesh<"dp", "tp">(me.comm(), {2, 2});
    const auto there = mesh<"fsdp">(me.comm(), {4});
    using here_mesh = std::remove_const_t<decltype(here)>;
    using there_mesh = std::remove_const_t<decltype(there)>;
    using whole = hocket::tensor<double, extents<7, 5>, here_mesh, hocket::elsewhere<hocket::replicated>>;
    using halves = hocket::tensor<double, extents<7, 5>, here_mesh, on<"dp", shard<0>>, on<"tp", hocket::replicated>>;
    using slices = hocket::tensor<double, extents<7, 5>, there_mesh, on<"fsdp", shard<0>>>;
    const auto value = [](const auto& at) { return static_cast<double>(at[0] * 10 + at[1]); };
    slices expected(there);
    hocket::fill(expected, value);
    const auto calls = [&] { return calls_on(here.all()).count + calls_on(here.template along<"tp">()).count; };
    const auto calls_of = [&](auto x) {
      hocket::fill(x, value);
      const long before = calls();
      const auto y = hocket::redistribute<slices>(x, there);
      me.check(std::equal(y.elements().begin(), y.elements().end(), expected.elements().begin()), "wrong elements");
      return calls() - before;
    };
    me.check(calls_of(whole(here)) == 0, "slices of wholes were exchanged");
    // The halves of 7 rows have 4 and 3 rows, and the slices 2, 2, 2 and 1, within the halves of their ranks.
    me.check(calls_of(halves(here)) == 0, "slices of halves were exchanged");
    using columns = hocket::tensor<double, extents<7, 5>, here_mesh, on<"dp", hocket::replicated>, on<"tp", shard<1>>>;
    me.check(calls_of(columns(here)) == 1, "columns were not exchanged by one collective");
  });
}

TEST_CASE("partial results are redistributed to another mesh by one or two collectives, as explained") {
  on_ranks(4, [](thread_rank& me) {
    const auto here = mesh<"dp", "tp">(me.comm(), {2, 2});
    const auto there = mesh<"fsdp">(me.comm(), {4});
    using here_mesh = std::remove_const_t<decltype(here)>;
    using there_mesh = std::remove_const_t<decltype(there)>;
    using matrix = extents<dynamic, 5>;
    using partial_sum = hocket::partial<hocket::sum>;
    using summands = hocket::tensor<double, matrix, here_mesh, hocket::elsewhere<partial_sum>>;
    using one_partial = hocket::tensor<double, matrix, here_mesh, on<"dp", partial_sum>, on<"tp", hocket::replicated>>;
    using cut_summands = hocket::tensor<double, matrix, here_mesh, on<"dp", partial_sum>, on<"tp", shard<0>>>;
    using whole = hocket::tensor<double, matrix, there_mesh, on<"fsdp", hocket::replicated>>;
    using slices = hocket::tensor<double, matrix, there_mesh, on<"fsdp", shard<0>>>;
    const auto calls = [&] {
      return calls_on(here.all()).count + calls_on(here.template along<"dp">()).count +
             calls_on(here.template along<"tp">()).count;
    };
    const auto check = [&](auto x, auto made, long most, const char* what) {
      hocket::fill(x, [](const auto& at) { return static_cast<double>(at[0] * 10 + at[1]); });
      using to_type = decltype(made);
      const std::string text = hocket::explain_redistribution<to_type>(x, there);
      const long before = calls();
      const auto y = hocket::redistribute<to_type>(x, there);
      const long made_calls = calls() - before;
      me.check(made_calls == most, [&] { return what + (": " + std::to_string(made_calls) + " collectives"); });
      me.check(text.find(": " + std::to_string(made_calls) + " collectives") != std::string::npos,
               [&] { return what + (" is explained as\n" + text); });
      double factor = 1;
      for (const auto& each : decltype(x)::placements_type::values) factor *= each.partial() ? 2 : 1;
      hocket::fill(made, [&](const auto& at) { return factor * static_cast<double>(at[0] * 10 + at[1]); });
      me.check(std::equal(y.elements().begin(), y.elements().end(), made.elements().begin()), what);
    };
    check(summands(here, {7}), whole(there, {7}), 1, "summands to whole");
    check(one_partial(here, {7}), whole(there, {7}), 1, "summands and copies to whole");
    check(summands(here, {8}), slices(there, {8}), 1, "summands to slices");
    check(cut_summands(here, {7}), whole(there, {7}), 2, "cut summands to whole");
    check(cut_summands(here, {40000}), whole(there, {40000}), 2, "many cut summands to whole");
  });
}

TEST_CASE("a repeated redistribution is planned once") {
  on_ranks(4, [](thread_rank& me) {
    const auto ranks = mesh<"dp", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_const_t<decltype(ranks)>;
    using columns = hocket::tensor<double, extents<dynamic, 5>, mesh_type, on<"dp", hocket::partial<hocket::sum>>,
                                   on<"tp", shard<1>>>;
    auto& memory = ranks.attributes().template get<hocket::detail::plan_cache<2, 2>>();
    const auto rows = [&](std::size_t count) {
      const columns x(ranks, {count});
      hocket::redistribute<on<"dp", hocket::replicated>, on<"tp", shard<0>>>(x);
      return memory.searches();
    };
    me.check(memory.searches() == 0, "searched before the first redistribution");
    me.check(rows(7) == 1 && rows(7) == 1, "the second call searched again");
    me.check(rows(8) == 2 && rows(7) == 2, "other extents have another plan, and the first is remembered");
    const columns x(ranks, {7});
    hocket::redistribute<on<"dp", hocket::replicated>>(x);
    me.check(memory.searches() == 3, "another placement has another plan");
    for (std::size_t count = 9; count < 9 + 2 * memory.most; ++count) rows(count);
    me.check(rows(7) == 4 + 2 * memory.most, "old plans are not removed");
  });
}
