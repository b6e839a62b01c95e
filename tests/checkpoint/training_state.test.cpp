// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Parameters and the states of an optimizer in a checkpoint: saved at one ZeRO stage by some ranks, and loaded at another
/// by others, also where ranks have copies of a parameter that they divide differently.
#include <hocket/checkpoint/training_state.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/checkpoint/store.hpp>
#include <hocket/group/split.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/scalar/bfloat16.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using hocket_test::on_ranks;
using hocket_test::scratch_directory;
using hocket_test::thread_rank;

/// How ranks share a training: `blocks` ranks have different parts of the model, and copies of one parameter; each part is
/// divided over the other ranks.
struct division {
  int ranks;
  int blocks;
  int stage;
  std::size_t bucket_elements;
};

constexpr division divisions[] = {{1, 1, 0, 4096}, {3, 1, 1, 300}, {5, 1, 3, 97},  {2, 2, 0, 700},
                                  {4, 2, 2, 130},  {6, 2, 3, 64},  {8, 2, 1, 5000}};
constexpr int most_blocks = 2;

/// A value that depends on the array, the parameter and the index. Exact in bfloat16.
float value_of(const std::string& array, const std::string& parameter, std::size_t index) {
  std::size_t hash = index * 2654435761U + array.size() * 31;
  for (const char each : parameter) hash = hash * 131 + static_cast<unsigned char>(each);
  return static_cast<float>(hash % 251) - 125;
}

/// The parameters of the rank that has block `block` of `blocks`. The copies of "shared" begin at different elements of their
/// buckets on different blocks.
hocket::parameter_layout layout_of(const division& how, int block) {
  std::vector<hocket::parameter> all;
  const int each = most_blocks / how.blocks;
  for (int b = block * each; b < (block + 1) * each; ++b)
    all.push_back({"block " + std::to_string(b), 200 + 331 * static_cast<std::size_t>(b)});
  all.push_back({.name = "shared", .elements = 523, .counts_in_norm = block == 0});
  return hocket::parameter_layout(std::move(all), {how.bucket_elements, how.bucket_elements});
}

/// Calls `act(state, visit_all, steps)` with the training of a rank, of which nothing has its final value yet.
template <class P, int Stage, class Act>
void with_training(thread_rank& me, const division& how, Act act) {
  const int block = me.rank() % how.blocks;
  const auto data = hocket::split(me.comm(), hocket::color{block}, hocket::key{me.rank()});
  auto parameters = hocket::parameters<P>(data, layout_of(how, block), hocket::zero<Stage>);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{});
  const auto visit_all = [&](auto visit) {
    parameters.visit_stored(visit);
    optimizer.visit_stored(visit);
  };
  hocket::checkpoint::state now;
  add_parameters(now, parameters);
  add_optimizer(now, optimizer);
  act(now, visit_all, optimizer.stored_steps());
}
template <class P, class Act>
void with_training(thread_rank& me, const division& how, Act act) {
  if (how.stage == 0) with_training<P, 0>(me, how, act);
  if (how.stage == 1) with_training<P, 1>(me, how, act);
  if (how.stage == 2) with_training<P, 2>(me, how, act);
  if (how.stage == 3) with_training<P, 3>(me, how, act);
}

template <class P>
void save_and_load(const std::string& folder, const division& saves, const division& loads) {
  on_ranks(saves.ranks, [&](thread_rank& me) {
    with_training<P>(me, saves, [&](auto& now, auto visit_all, std::uint64_t& steps) {
      steps = 7;
      visit_all([](const std::string& array, const hocket::parameter& of, std::size_t first, auto values) {
        for (auto& each : values) {
          each = static_cast<std::remove_reference_t<decltype(each)>>(value_of(array, of.name, first++));
        }
      });
      hocket::checkpoint::store(folder, me.comm()).save(7, now);
    });
  });
  on_ranks(loads.ranks, [&](thread_rank& me) {
    with_training<P>(me, loads, [&](auto& now, auto visit_all, const std::uint64_t& steps) {
      me.check(hocket::checkpoint::store(folder, me.comm()).load_newest(now).has_value(), "no checkpoint");
      me.check(steps == 7, "the number of steps differs");
      std::size_t arrays = 0;
      visit_all([&](const std::string& array, const hocket::parameter& of, std::size_t first, auto values) {
        ++arrays;
        for (const auto& each : values) {
          if (static_cast<float>(each) == value_of(array, of.name, first++)) continue;
          return me.complain(array + " of " + of.name + ": element " + std::to_string(first - 1) + " differs");
        }
      });
      me.check(arrays > 0, "nothing is stored");
    });
  });
}

}  // namespace

TEST_CASE("parameters and optimizer states that some ranks save at one stage are loaded by others at another") {
  for (const division& saves : divisions) {
    for (const division& loads : divisions) {
      INFO(saves.ranks << " ranks at stage " << saves.stage << ", then " << loads.ranks << " at stage " << loads.stage);
      const scratch_directory folder;
      save_and_load<float>(folder.path() + "/all", saves, loads);
    }
  }
}

TEST_CASE("parameters in bfloat16 are saved with their float copies") {
  const scratch_directory folder;
  save_and_load<hocket::bfloat16>(folder.path() + "/all", divisions[5], divisions[1]);
}

TEST_CASE("the elements of copies that are not saved must be on other ranks") {
  const scratch_directory folder;
  std::vector<float> whole(10);
  on_ranks(2, [&](thread_rank& me) {
    hocket::checkpoint::state now;
    now.add({.name = "gain",
             .type = hocket::checkpoint::element_type::f32,
             .extents = {10},
             .where = {{0}, {10}},
             .data = reinterpret_cast<std::byte*>(whole.data()),
             .is_copy = true});
    const auto found = me.expect(hocket::errc::invalid_argument,
                                 [&] { hocket::checkpoint::store(folder.path() + "/all", me.comm()).save(1, now); });
    me.check(found && found->reason().find("'gain': the ranks hold 0 of its 10 elements") != std::string::npos,
             [&] { return std::string(found->what()); });
  });
}
