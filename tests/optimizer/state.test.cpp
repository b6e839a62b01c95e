// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Training that continues from a saved state, on any number of ranks, at any stage and with other buckets, has the same
// bits as training without a stop. Also training with shards inside groups and replicas across groups.
#include <hocket/optimizer/state.hpp>

#include "gradient/step.hpp"
#include "optimizer/training.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/loss_scale.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/group/split.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/adamw.hpp>
#include <hocket/optimizer/rule/lion.hpp>
#include <hocket/optimizer/rule/sgd.hpp>
#include <hocket/scalar/bfloat16.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace hocket_test::gradient;
using namespace hocket_test::optimizer;
using hocket_test::on_ranks;
using hocket_test::thread_rank;

// ── Checkpoints ────────────────────────────────────────────────────────────────────────────────────────────────────

/// A piece with its own copy of the values, as if read from a file.
template <class F>
struct kept_piece {
  hocket::state_piece<F> piece;
  std::vector<F> values;
};

/// The pieces that all ranks wrote.
template <class P, class F>
struct checkpoint {
  std::mutex mutex;
  std::uint64_t steps = 0;
  std::vector<kept_piece<P>> parameters;
  std::vector<kept_piece<F>> states;

  template <class T>
  static void keep(std::vector<kept_piece<T>>& to, const std::vector<hocket::state_piece<T>>& pieces) {
    for (const auto& each : pieces) to.push_back({each, {each.values.begin(), each.values.end()}});
  }
  template <class T>
  static std::vector<hocket::state_piece<T>> read(const std::vector<kept_piece<T>>& from) {
    std::vector<hocket::state_piece<T>> pieces;
    for (const auto& each : from) {
      pieces.push_back(each.piece);
      pieces.back().values = each.values;
    }
    return pieces;
  }

  template <class Parameters, class Optimizer>
  void write(Parameters& from, Optimizer& optimizer) {
    const std::lock_guard lock(mutex);
    const auto now = optimizer.state();
    steps = now.steps;
    keep(parameters, from.state());
    keep(states, now.pieces);
  }
  template <class Parameters, class Optimizer>
  void restore(Parameters& to, Optimizer& optimizer) const {
    to.restore(read(parameters));
    optimizer.restore({steps, read(states)});
  }
};

/// Returns true if each element of each array is in exactly one piece.
template <class F>
bool each_once(const std::vector<kept_piece<F>>& pieces, const hocket::parameter_layout& layout,
               const std::vector<std::string>& arrays) {
  std::map<std::pair<std::string, std::string>, std::vector<int>> found;
  for (const auto& each : pieces) {
    auto& counts = found[{each.piece.array, each.piece.parameter}];
    counts.resize(each.piece.elements);
    for (std::size_t i = 0; i < each.values.size(); ++i) ++counts.at(each.piece.first + i);
  }
  std::size_t expected = 0;
  for (std::size_t i = 0; i < layout.parameters(); ++i) {
    if (layout[i].elements == 0) continue;
    for (const std::string& array : arrays) {
      if (found[{array, layout[i].name}] != std::vector<int>(layout[i].elements, 1)) return false;
      ++expected;
    }
  }
  return found.size() == expected;
}

// ── Ranks that train ───────────────────────────────────────────────────────────────────────────────────────────────

/// How ranks share the work: `shards` ranks hold one copy of the model, and there are `replicas` copies.
struct dealing {
  int shards = 1;
  int replicas = 1;
  int stage = 0;
  bool large_buckets = false;
  std::string name() const {
    return std::to_string(shards) + " x " + std::to_string(replicas) + " ranks, stage " + std::to_string(stage);
  }
};

hocket::parameter_layout layout_of(const dealing& how) {
  if (!how.large_buckets) return small_layout();
  std::vector<hocket::parameter> parameters;
  const auto small = small_layout();
  for (std::size_t i = 0; i < small.parameters(); ++i) parameters.push_back(small[i]);
  return hocket::parameter_layout(parameters);
}

/// Calls `use(gradients, parameters, optimizer)` on all ranks.
template <class P, class F, class Rule, int Stage, class Use>
void with_stage(thread_rank& me, const dealing& how, const Rule& rule, Use use) {
  using when = std::conditional_t<(Stage >= 2), hocket::every_microbatch_t, hocket::last_microbatch_t>;
  constexpr auto stage = hocket::zero<Stage>;
  const auto inside = hocket::split(me.comm(), hocket::color{me.rank() / how.shards}, hocket::key{me.rank()});
  const auto across = hocket::split(me.comm(), hocket::color{me.rank() % how.shards}, hocket::key{me.rank()});
  const auto fetching = hocket::split(me.comm(), hocket::color{me.rank() / how.shards}, hocket::key{me.rank()});
  const auto layout = layout_of(how);
  const auto run = [&](auto gradients, auto parameters) {
    auto optimizer = hocket::make_optimizer<F>(parameters, rule);
    use(gradients, parameters, optimizer);
  };
  using sum_type = hocket::exact_sum<float>;
  if (how.replicas == 1) {
    run(hocket::gradients<sum_type>(inside, layout, when(), stage), hocket::parameters<P>(fetching, layout, stage));
  } else if constexpr (Stage >= 2) {
    run(hocket::gradients<sum_type>(hocket::hybrid(inside, across), layout, hocket::scatter_every_reduce_last, stage),
        hocket::parameters<P>(hocket::hybrid(fetching, across), layout, stage));
  } else {
    run(hocket::gradients<sum_type>(hocket::hybrid(inside, across), layout, when(), stage),
        hocket::parameters<P>(hocket::hybrid(fetching, across), layout, stage));
  }
}

template <class P, class F, class Rule, class Use>
void on_dealt_ranks(const dealing& how, const Rule& rule, Use use) {
  on_ranks(how.shards * how.replicas, [&](thread_rank& me) {
    me.at(how.name());
    const auto named = [&](auto&... parts) { use(me, parts...); };
    switch (how.stage) {
      case 0: return with_stage<P, F, Rule, 0>(me, how, rule, named);
      case 1: return with_stage<P, F, Rule, 1>(me, how, rule, named);
      case 2: return with_stage<P, F, Rule, 2>(me, how, rule, named);
      default: return with_stage<P, F, Rule, 3>(me, how, rule, named);
    }
  });
}

template <class Gradients, class Optimizer>
void take_steps(thread_rank& me, Gradients& gradients, Optimizer& optimizer, int steps) {
  for (int step = 0; step < steps; ++step) {
    take_exact_step(gradients, me.rank(), me.size(), 2);
    const auto found = hocket::norm(gradients);
    optimizer.step(gradients, 0.01, found.step_factor(samples, 2000));
  }
}

constexpr int steps_before = 2, steps_after = 3;

template <class P, class F, class Rule>
std::vector<P> trained_alone(const Rule& rule) {
  std::vector<P> values;
  on_dealt_ranks<P, F>(dealing{}, rule, [&](thread_rank& me, auto& gradients, auto& parameters, auto& optimizer) {
    set_first_values<P>(parameters);
    auto again = hocket::make_optimizer<F>(parameters, rule);  // with a wider copy of these values
    static_cast<void>(optimizer);
    take_steps(me, gradients, again, steps_before + steps_after);
    values = all_values(parameters);
  });
  return values;
}

/// Trains on `before`, saves the state, and continues on `after`.
template <class P, class F, class Rule>
void check_resumed(const dealing& before, const dealing& after, const Rule& rule,
                   const std::vector<std::string>& arrays, const std::vector<P>& expected) {
  checkpoint<P, F> kept;
  on_dealt_ranks<P, F>(before, rule, [&](thread_rank& me, auto& gradients, auto& parameters, auto&) {
    set_first_values<P>(parameters);
    auto optimizer = hocket::make_optimizer<F>(parameters, rule);
    take_steps(me, gradients, optimizer, steps_before);
    kept.write(parameters, optimizer);
  });
  INFO(before.name() << ", then " << after.name());
  CHECK(kept.steps == steps_before);
  CHECK(each_once(kept.states, small_layout(), arrays));
  CHECK(each_once(kept.parameters, small_layout(), {"parameter"}));
  on_dealt_ranks<P, F>(after, rule, [&](thread_rank& me, auto& gradients, auto& parameters, auto& optimizer) {
    kept.restore(parameters, optimizer);
    me.check(optimizer.steps() == steps_before, "the count of steps");
    take_steps(me, gradients, optimizer, steps_after);
    me.check(optimizer.steps() == steps_before + steps_after, "the count of steps, after");
    me.check(same_bits(all_values(parameters), expected), "other bits than without a stop");
  });
}

template <class P, class F, class Rule>
void check_rule(const Rule& rule, const std::vector<std::string>& arrays) {
  const auto expected = trained_alone<P, F>(rule);
  const dealing one{}, three_of_3{3, 1, 3}, five_of_1{5, 1, 1}, two_of_2{2, 1, 2}, eight_of_1{8, 1, 1, true},
      seven_of_3{7, 1, 3, true}, hybrid_1{2, 2, 1}, hybrid_3{3, 2, 3}, plain_0{3, 1, 0}, hybrid_0{2, 2, 0};
  for (const auto& [before, after] : {std::pair(one, three_of_3),
                                      {three_of_3, one},
                                      {five_of_1, two_of_2},
                                      {two_of_2, eight_of_1},
                                      {eight_of_1, seven_of_3},
                                      {hybrid_1, three_of_3},
                                      {three_of_3, hybrid_3},
                                      {hybrid_3, plain_0},
                                      {plain_0, hybrid_1},
                                      {hybrid_0, five_of_1}}) {
    check_resumed<P, F>(before, after, rule, arrays, expected);
  }
}

TEST_CASE("training continues with the same bits on another number of ranks, at another stage, with other buckets") {
  check_rule<float, float>(hocket::adamw{.weight_decay = 0.1}, {"first moment", "second moment"});
  check_rule<hocket::bfloat16, float>(hocket::adamw{}, {"master", "first moment", "second moment"});
  check_rule<float, double>(hocket::lion{}, {"master", "momentum"});
}

TEST_CASE("training with shards inside groups and replicas across groups has the bits of one rank") {
  const hocket::adamw rule{.weight_decay = 0.1};
  const auto expected = trained_alone<float, float>(rule);
  for (const auto& [shards, replicas] : {std::pair(1, 2), {2, 2}, {3, 2}, {2, 3}, {4, 2}, {1, 5}, {7, 1}}) {
    for (const int stage : {0, 1, 2, 3}) {
      on_dealt_ranks<float, float>({shards, replicas, stage}, rule,
                                   [&](thread_rank& me, auto& gradients, auto& parameters, auto& optimizer) {
                                     set_first_values<float>(parameters);
                                     take_steps(me, gradients, optimizer, steps_before + steps_after);
                                     me.check(same_bits(all_values(parameters), expected), "other bits");
                                   });
    }
  }
}

TEST_CASE("a state that cannot be restored is rejected by name, and changes nothing") {
  on_dealt_ranks<float, float>(
      {2, 1, 1}, hocket::adamw{}, [&](thread_rank& me, auto&, auto& parameters, auto& optimizer) {
        set_first_values<float>(parameters);
        const auto before = all_values(parameters);
        const auto refused = [&](const std::string& part, auto call) {
          const auto found = me.expect(hocket::errc::invalid_argument, call);
          me.check(found && std::string(found->what()).find(part) != std::string::npos,
                   [&] { return "'" + part + "' is not in: " + (found ? found->what() : ""); });
        };
        const std::vector<float> values(1000, 7);
        const auto whole = [&](const std::string& array) {
          std::vector<hocket::state_piece<float>> pieces;
          for (std::size_t i = 0; i < parameters.layout().parameters(); ++i) {
            const auto& each = parameters.layout()[i];
            pieces.push_back({array, each.name, each.elements, 0, std::span(values).first(each.elements)});
          }
          return pieces;
        };
        auto pieces = whole("parameter");
        pieces[0].values = pieces[0].values.first(699);
        refused("element 699 of parameter 'embedding' is in no piece", [&] { parameters.restore(pieces); });
        pieces = whole("parameter");
        pieces[1].first = 1;
        refused("a piece of parameter 'w0' begins at element 1 and has 129 elements, but parameter 'w0' has only 129",
                [&] { parameters.restore(pieces); });
        pieces = whole("parameter");
        pieces[8].elements = 8;
        refused("parameter 'b2' has 8 elements in the saved state, but 7 in this layout",
                [&] { parameters.restore(pieces); });
        pieces.erase(pieces.begin() + 8);
        refused("there is no piece of parameter 'b2'", [&] { parameters.restore(pieces); });
        me.check(same_bits(all_values(parameters), before), "a rejected state has changed something");
        pieces = whole("first moment");
        // A gap in another rank's part is no error here; a missing array is an error.
        refused("there is no piece of the second moment of", [&] { optimizer.restore({3, pieces}); });
        me.check(optimizer.steps() == 0, "the count of steps has changed");
        for (const auto& each : optimizer.state().pieces) {
          for (const float value : each.values) me.check(value == 0, "a state has changed");
        }
        pieces = whole("parameter");
        parameters.restore(pieces);
        for (const float each : all_values(parameters)) me.check(each == 7, "restored");
      });
}

TEST_CASE("a restored loss scale continues where it stopped") {
  const hocket::loss_scale_options how{.initial = 64, .interval = 3, .least = 2, .hysteresis = 2};
  const std::vector<bool> finite = {true, true, false, true, true, true, false, false, true, true, true, true, false};
  for (std::size_t stop = 0; stop <= finite.size(); ++stop) {
    hocket::loss_scale one(how), before(how), after(how);
    for (std::size_t i = 0; i < stop; ++i) before.update(finite[i]);
    after.restore(before.state());
    for (std::size_t i = 0; i < finite.size(); ++i) {
      one.update(finite[i]);
      if (i < stop) continue;
      after.update(finite[i]);
      CHECK(after.value() == one.value());
    }
    CHECK(after.value() == one.value());
    CHECK(after.skipped() == one.skipped());
  }
  hocket::loss_scale scale(how);
  CHECK_THROWS_WITH(scale.restore({.value = 1, .patience = 1}), Catch::Matchers::Contains("not below least"));
  CHECK_THROWS_WITH(scale.restore({.value = 0x1p128, .patience = 1}), Catch::Matchers::Contains("at most 2^127"));
  CHECK_THROWS_WITH(scale.restore({.value = 8, .patience = 3}), Catch::Matchers::Contains("at most hysteresis"));
  CHECK_THROWS_WITH(scale.restore({.value = 8, .patience = 1, .finite = 3}),
                    Catch::Matchers::Contains("below interval"));
  CHECK(scale.value() == 64);
}

template <class Rule>
void check_decay(const Rule& rule) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const hocket::parameter_layout layout({{"weights", 130}, hocket::undecayed({"gain", 70}), {"more", 3}});
      auto gradients = hocket::gradients<float>(me.comm(), layout, hocket::last_microbatch, hocket::zero<1>);
      auto parameters = hocket::parameters<float>(me.comm(), layout, hocket::zero<1>);
      for (std::size_t i = 0; i < 3; ++i) parameters.set(i, std::vector<float>(layout[i].elements, 2));
      auto optimizer = hocket::make_optimizer<float>(parameters, rule);
      gradients.begin_microbatch(0, 1);
      for (std::size_t i = 3; i-- > 0;) gradients.ready(i);  // zero gradients: only decay changes the values
      gradients.end_microbatch(0, 1);
      gradients.finish();
      optimizer.step(gradients, 0.5, 1);
      for (std::size_t i = 0; i < 3; ++i) {
        for (const float each : parameters.of(i)) {
          me.check(each == (i == 1 ? 2.0F : 1.75F), [&] { return layout[i].name + " is " + std::to_string(each); });
        }
      }
    });
  }
}

TEST_CASE("weight decay does not change undecayed parameters") {
  check_decay(hocket::adamw{.weight_decay = 0.25});
  check_decay(hocket::sgd{.weight_decay = 0.25});
  check_decay(hocket::lion{.weight_decay = 0.25});
}

}  // namespace
