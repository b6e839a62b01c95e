// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The selection of algorithms: the choice can always run, and is the same on all ranks.
#include "support/catch.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/explain.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/group/local.hpp>
#include <hocket/plan/price.hpp>
#include <hocket/selection/select.hpp>

#include <bit>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
namespace plan = hocket::plan;
using hocket::selection::query;
using hocket::selection::table;

namespace {

constexpr auto any_order = plan::combination_order::any_order;

const plan::collective_kind collectives[] = {
    plan::collective_kind::all_reduce, plan::collective_kind::reduce_scatter, plan::collective_kind::all_gather,
    plan::collective_kind::all_to_all, plan::collective_kind::broadcast,      plan::collective_kind::barrier,
    plan::collective_kind::reduce,     plan::collective_kind::gather,         plan::collective_kind::scatter};

/// Link costs that cover the range of transports: different latencies and bandwidths, and those of `local`.
std::vector<hocket::transport::link_costs> all_costs() {
  std::vector<hocket::transport::link_costs> all = {hocket::local::domain::costs()};
  for (const double latency : {1e-7, 1e-6, 5e-5}) {
    for (const double per_byte : {1e-11, 1e-9}) all.push_back({latency, per_byte, latency / 2, per_byte, 5e-11});
  }
  all.push_back({1e-7, 1e-11, 1e-6, 1e-11, 5e-11});  // flags that are slower than messages
  return all;
}

template <class Visit>
void for_each_query(Visit visit) {
  for (const plan::collective_kind kind : collectives) {
    for (const int ranks : {1, 2, 3, 8, 17, 1000}) {
      for (const std::size_t bytes :
           {std::size_t{0}, std::size_t{8}, std::size_t{49}, std::size_t{1} << 16, std::size_t{1} << 30}) {
        for (const auto order : {plan::combination_order::fixed_tree, plan::combination_order::rank_order,
                                 plan::combination_order::any_order}) {
          for (const bool pointers : {false, true}) {
            for (const std::size_t staging : {std::size_t{0}, std::size_t{1} << 16}) {
              for (const auto& costs : all_costs()) {
                const plan::collective what{kind, 0};  // without a reduction, no order is required
                const auto needed = what.reduces() ? order : plan::combination_order::any_order;
                visit(query{what, bytes, ranks, needed, pointers, staging, costs});
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("the chosen algorithm can run the query, and no candidate that can is cheaper") {
  std::size_t wrong = 0;
  for_each_query([&](const query& asked) {
    const table candidates(asked);
    const auto& best = candidates.best();
    const plan::any_algorithm chosen = best.make(0);
    const plan::shape shape = chosen.shape(asked.ranks);
    bool right = best.unusable_reason == nullptr && chosen.collective() == asked.what;
    right = right && (asked.ranks == 1 || asked.peer_pointers || !shape.peer_pointers);
    right = right && shape.order <= asked.order;
    right = right && (best.name != std::string_view("push") || asked.bytes <= hocket::detail::push_line::capacity);
    for (const auto& each : candidates)
      right = right && (each.unusable_reason != nullptr || best.seconds <= each.seconds);
    wrong += right ? 0 : 1;
  });
  CHECK(wrong == 0);
}

// The direct path of all_reduce bypasses the table; a rank that cannot take it reads the table. Both must agree.
TEST_CASE("push is chosen for vectors of at most one line among few ranks with peer pointers") {
  for (int ranks = 2; ranks <= hocket::detail::most_ranks_to_push; ++ranks) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, hocket::detail::push_line::capacity - 1,
                                    hocket::detail::push_line::capacity}) {
      for (const auto& costs : all_costs()) {
        const table candidates(query{
            {plan::collective_kind::all_reduce, 0}, bytes, ranks, plan::combination_order::fixed_tree, true, 0, costs});
        INFO(ranks << " ranks, " << bytes << " bytes");
        CHECK(candidates.best().name == std::string_view("push"));
      }
    }
  }
}

// Closed forms are fast; the virtual clock, which runs the steps of the plan, is the reference.
TEST_CASE("the table's prices of algorithms with messages agree with the virtual clock") {
  const auto ratio = [](plan::collective_kind kind, const char* name, int ranks, std::size_t block,
                        const hocket::transport::link_costs& costs) {
    const query asked{{kind, 0}, block, ranks, any_order, false, 0, costs};
    const table candidates(asked);
    for (const auto& each : candidates) {
      if (each.name != std::string_view(name)) continue;
      const plan::cost_model model{.latency = costs.message_latency,
                                   .seconds_per_byte = costs.message_per_byte,
                                   .reduce_seconds_per_byte = costs.reduce_per_byte};
      const std::size_t bytes = block * static_cast<std::size_t>(asked.what.blocks(ranks));
      return each.seconds / plan::price(each.make(0), ranks, bytes, model).seconds;
    }
    return 0.0;
  };
  using kind = plan::collective_kind;
  for (const auto& costs : all_costs()) {
    for (int ranks = 2; ranks <= 64; ++ranks) {
      const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
      const std::size_t block = std::size_t{1024} * static_cast<std::size_t>(ranks);
      const auto exact = [&](kind what, const char* name) {
        INFO(name << ", " << ranks << " ranks, latency " << costs.message_latency << " s");
        CHECK(ratio(what, name, ranks, block, costs) == Approx(1).epsilon(1e-9));
      };
      const auto near = [&](kind what, const char* name) {
        INFO(name << ", " << ranks << " ranks, latency " << costs.message_latency << " s");
        const double found = ratio(what, name, ranks, block, costs);
        CHECK((found > 1 / 2.1 && found < 2.1));
      };
      exact(kind::all_reduce, "ring");
      exact(kind::reduce_scatter, "ring");
      exact(kind::all_gather, "ring");
      exact(kind::broadcast, "binomial");
      for (const char* name : {"recursive_doubling", "halving_doubling"}) {
        power ? exact(kind::all_reduce, name) : near(kind::all_reduce, name);
      }
      // Messages of these plans compete for a rank's port, which no closed form describes exactly.
      near(kind::all_reduce, "double_tree");
      near(kind::all_to_all, "pairwise");
      power ? exact(kind::reduce, "binomial") : near(kind::reduce, "binomial");
      near(kind::reduce, "ring");
      exact(kind::gather, "binomial");
      exact(kind::scatter, "binomial");
    }
  }
  for (int ranks = 2; ranks <= 64; ++ranks) {
    CHECK(ratio(kind::barrier, "dissemination", ranks, 0, all_costs().back()) == Approx(1).epsilon(1e-9));
  }
}

TEST_CASE("reading what peers have just written costs more than reading all contributions, up to what caches hold") {
  const auto best = [](std::size_t bytes, double fresh) {
    const hocket::transport::link_costs costs{
        .load_per_byte = 3e-11, .reduce_per_byte = 3e-11, .fresh_load_per_byte = fresh, .fresh_bytes = 128 * 1024};
    return std::string(
        table({{plan::collective_kind::all_reduce, 0}, bytes, 2, any_order, true, 0, costs}).best().name);
  };
  CHECK(best(128 << 10, 0) == "two_shot");
  CHECK(best(128 << 10, 2e-10) == "one_shot");
  CHECK(best(64 << 20, 2e-10) == "two_shot");
}

TEST_CASE("messages that wait for their receivers cost more than reading directly, short ones less") {
  const auto best = [](std::size_t bytes) {
    const hocket::transport::link_costs costs{
        .message_latency = 2e-7, .flag_latency = 2e-7, .load_per_byte = 6e-11, .eager_bytes = 4096};
    return std::string(
        table({{plan::collective_kind::all_to_all, 0}, bytes, 3, any_order, true, 0, costs}).best().name);
  };
  CHECK(best(8) == "pairwise");
  CHECK(best(1 << 20) == "direct");
}

TEST_CASE("ranks of one host send to all others at once, except blocks longer than a cache; a network uses rings") {
  const auto best = [](plan::collective_kind kind, std::size_t block, int ranks, bool on_host) {
    const hocket::transport::link_costs costs{.message_latency = 4e-7,
                                              .message_per_byte = 5e-11,
                                              .flag_latency = 2e-7,
                                              .load_per_byte = 6e-11,
                                              .load_latency = 1e-3,
                                              .fresh_load_per_byte = 1e-10,
                                              .fresh_bytes = 128 * 1024};
    return std::string(table({{kind, 0}, block, ranks, any_order, on_host, 0, costs}).best().name);
  };
  for (const int ranks : {3, 4, 8, 16}) {
    INFO(ranks << " ranks");
    for (const std::size_t block : {0U, 8U, 128U * 1024}) {
      CHECK(best(plan::collective_kind::reduce_scatter, block, ranks, true) == "pairwise");
      CHECK(best(plan::collective_kind::reduce_scatter, block, ranks, false) == "ring");
      CHECK(best(plan::collective_kind::all_gather, block, ranks, true) == "pairwise");
      CHECK(best(plan::collective_kind::all_gather, block, ranks, false) == "ring");
    }
    CHECK(best(plan::collective_kind::reduce_scatter, 1 << 20, ranks, true) == "pairwise");
    CHECK(best(plan::collective_kind::all_gather, 1 << 20, ranks, true) == "ring");
  }
}

TEST_CASE("a collective with a root keeps the requested root") {
  for (const plan::collective_kind kind : collectives) {
    if (!plan::collective{kind, 0}.has_root()) continue;
    for (const bool pointers : {false, true}) {
      const query asked{{kind, 3}, 1000, 5, any_order, pointers, 0, hocket::local::domain::costs()};
      CHECK(table(asked).best().make(3).collective() == plan::collective{kind, 3});
    }
  }
}

TEST_CASE("blocks of different lengths exclude a plan that moves several blocks in one message") {
  for (const plan::collective_kind kind : {plan::collective_kind::gather, plan::collective_kind::scatter}) {
    query asked{{kind, 0}, 8, 1000, any_order, false, 0, hocket::local::domain::costs()};
    CHECK(table(asked).best().name == std::string_view("binomial"));
    asked.equal_lengths = false;
    CHECK(table(asked).best().name == std::string_view("flat"));
  }
}

TEST_CASE("unequal blocks are priced by the longest block in a ring, and by their sum in a direct all_gather") {
  const auto seconds = [](plan::collective_kind what, std::size_t longest, std::size_t total, const char* name) {
    query asked{{what, 0}, longest, 8, any_order, true, 0, hocket::local::domain::costs()};
    asked.total_bytes = total;
    for (const auto& each : table(asked)) {
      if (each.name == std::string_view(name)) return each.seconds;
    }
    return -1.0;
  };
  const auto gather = plan::collective_kind::all_gather, scatter = plan::collective_kind::reduce_scatter;
  CHECK(seconds(gather, 8000, 64'000, "direct") == seconds(gather, 8000, 0, "direct"));
  CHECK(seconds(gather, 8000, 8000, "ring") == seconds(gather, 8000, 64'000, "ring"));
  CHECK(seconds(gather, 8000, 8000, "direct") < seconds(gather, 8000, 64'000, "direct"));
  CHECK(seconds(scatter, 8000, 8000, "direct") == seconds(scatter, 8000, 64'000, "direct"));
}

TEST_CASE("lengths that not all ranks know exclude staging, and the sum of unequal blocks must fit") {
  const auto costs = hocket::local::domain::costs();
  constexpr std::size_t guess = hocket::selection::guessed_block_bytes;
  query asked{{plan::collective_kind::all_to_all, 0}, guess, 4, any_order, true, 256 * 1024, costs};
  CHECK(table(asked).begin()->unusable_reason == nullptr);
  asked.lengths_are_known = false;
  CHECK(table(asked).begin()->unusable_reason != nullptr);
  CHECK(table(asked).best().name == std::string_view("pairwise"));
  asked.staging_bytes = 0;
  CHECK(table(asked).best().name == std::string_view("direct"));

  query gather{{plan::collective_kind::all_gather, 0}, 200 * 1024, 4, any_order, true, 256 * 1024, costs};
  CHECK(table(gather).begin()->unusable_reason != nullptr);
  gather.total_bytes = 256 * 1024;
  CHECK(table(gather).begin()->unusable_reason == nullptr);
}

TEST_CASE("explain accepts counts for the collectives that take counts") {
  std::string text;
  hocket::local::run(2, [&](auto comm) {
    if (comm.rank() != 0) return;
    const std::size_t lengths[] = {3, 5};
    text = hocket::explain<float>(comm, hocket::all_gather_v, hocket::counts{lengths}) +
           hocket::explain<float>(comm, hocket::reduce_scatter_v, hocket::counts{lengths}) +
           hocket::explain<float>(comm, hocket::all_to_all_v);
  });
  CHECK(text.find("all_gather_v of up to 20 bytes per block on 2 ranks") != std::string::npos);
  CHECK(text.find("reduce_scatter_v of up to 20 bytes") != std::string::npos);
  CHECK(text.find("all_to_all_v of any length, estimated as 16384 bytes") != std::string::npos);
}

TEST_CASE("large vectors use algorithms that move less data than those for small vectors") {
  const auto best = [](std::size_t bytes, bool pointers) {
    const query asked{{plan::collective_kind::all_reduce, 0}, bytes, 8, any_order, pointers, 0,
                      hocket::local::domain::costs()};
    return std::string(table(asked).best().name);
  };
  CHECK(best(64 << 20, true) == "two_shot");
  CHECK(best(1 << 30, false) != "recursive_doubling");
  CHECK(best(64, false) == "recursive_doubling");
}

TEST_CASE("explain shows every candidate, marks the chosen one, and is the same on all ranks") {
  std::vector<std::string> texts(3);
  hocket::local::run(3, [&](auto comm) {
    std::string& text = texts[static_cast<std::size_t>(comm.rank())];
    text = hocket::explain<float>(comm, hocket::all_reduce, 1 << 20);
    text += hocket::explain<float>(comm, hocket::reduce_scatter, 100) +
            hocket::explain<float>(comm, hocket::all_gather, 100) +
            hocket::explain<float>(comm, hocket::all_to_all, 100) +
            hocket::explain<float>(comm, hocket::broadcast, 100) + hocket::explain<float>(comm, hocket::barrier, 0);
  });
  CHECK(texts[0] == texts[1]);
  CHECK(texts[0] == texts[2]);
  for (const char* part :
       {"all_reduce of 4194304 bytes on 3 ranks", "push", "ring", "<- chosen", "longer than a cache line"}) {
    INFO(part);
    CHECK(texts[0].find(part) != std::string::npos);
  }
}

TEST_CASE("explain reports 2^64 or more bytes if the size of a vector overflows") {
  std::string huge, small, blocks;
  hocket::local::run(3, [&](auto comm) {
    if (comm.rank() != 0) return;
    huge = hocket::explain<float>(comm, hocket::all_reduce, std::size_t{1} << 62);
    small = hocket::explain<float>(comm, hocket::all_reduce, 1);
    const std::size_t lengths[] = {std::size_t{1} << 62, 1, 1};
    blocks = hocket::explain<float>(comm, hocket::all_gather_v, hocket::counts{lengths});
  });
  INFO(huge);
  CHECK(huge.find("all_reduce of 2^64 or more bytes on 3 ranks") == 0);
  CHECK(huge.find("longer than a cache line") != std::string::npos);
  CHECK(small.find("longer than a cache line") == std::string::npos);
  CHECK(blocks.find("all_gather_v of up to 2^64 or more bytes per block") == 0);
}

TEST_CASE("saturated_product returns the largest number on overflow") {
  using hocket::selection::saturated_product;
  CHECK(saturated_product(3, 5) == 15);
  CHECK(saturated_product(std::size_t{1} << 62, 4) == std::numeric_limits<std::size_t>::max());
  query asked{{plan::collective_kind::all_gather, 0}, std::size_t{1} << 62, 4, any_order, true, 256 * 1024, {}};
  CHECK(table(asked).begin()->unusable_reason == std::string_view("longer than the staging memory"));
}

TEST_CASE("explain takes the options of a call into account") {
  std::string named, failing, narrow, checked, invariant, moved, exchanged, own;
  hocket::local::run(3, [&](auto comm) {
    if (comm.rank() != 0) return;
    using hocket::with;
    const std::plus<> sum;
    const auto last = [](float, float b) { return b; };
    named = hocket::explain<float>(comm, hocket::all_reduce, 1 << 20, with(hocket::ring));
    failing = hocket::explain<float>(comm, hocket::all_reduce, 100, last, with(hocket::push));
    narrow = hocket::explain<float>(comm, hocket::all_reduce, 100, sum, with(hocket::wire<hocket::bfloat16>));
    checked = hocket::explain<float>(comm, hocket::all_gather, 100, with(hocket::require(hocket::checksummed)));
    invariant =
        hocket::explain<float>(comm, hocket::reduce_scatter, 1, with(hocket::require(hocket::rank_count_invariant)));
    const std::size_t lengths[] = {1, 2, 3};
    moved = hocket::explain<float>(comm, hocket::all_gather_v, hocket::counts{lengths}, with(hocket::ring));
    exchanged = hocket::explain<float>(comm, hocket::all_to_all_v, with(hocket::pairwise));
    own = hocket::explain<float>(comm, hocket::all_reduce, 100,
                                 with(hocket::algorithm(plan::ring_all_gather{}), hocket::timeout(1s)));
  });
  const auto row = [](const std::string& text, const std::string& name) {
    const std::size_t begin = text.find("  " + name);
    return begin == std::string::npos ? std::string() : text.substr(begin, text.find('\n', begin) - begin);
  };
  CHECK(row(named, "ring").find("<- chosen: named by with(...)") != std::string::npos);
  CHECK(named.find("cheapest") == std::string::npos);
  CHECK(row(failing, "push").find("which fails: push: ") != std::string::npos);
  CHECK(failing.find("<- chosen") == std::string::npos);
  CHECK(narrow.find("all_reduce of 200 bytes") == 0);
  CHECK(row(checked, "direct").find("<- chosen") == std::string::npos);
  CHECK(row(checked, "ring").find("<- chosen") != std::string::npos);
  CHECK(invariant.find("reduce_scatter of 4 bytes") == std::string::npos);
  CHECK(row(moved, "ring").find("<- chosen") != std::string::npos);
  CHECK(row(exchanged, "pairwise").find("<- chosen") != std::string::npos);
  CHECK(own.find("which fails: ") != std::string::npos);
}
