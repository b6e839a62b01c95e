// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/gradient/accumulator.hpp>

#include "gradient/step.hpp"
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/gradient/norm.hpp>
#include <hocket/group/split.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/scalar/bfloat16.hpp>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace hocket_test::gradient;
using hocket_test::on_ranks;
using hocket_test::thread_rank;

/// Checks that this rank's part of the sum equals the sequential sum, to `tolerance` relative to `magnitude`.
template <class Gradients>
void check_sum(thread_rank& me, Gradients& gradients, const std::vector<double>& expected, double tolerance) {
  for (std::size_t b = 0; b < gradients.layout().buckets(); ++b) {
    const auto range = gradients.own_range(b);
    const auto found = gradients.result(b);
    me.check(found.size() == range.size, "result and own_range differ in size");
    for (std::size_t at = 0; at < range.size; ++at) {
      const double wanted = expected[range.first + at];
      if (me.check(std::abs(as_double(found[at]) - wanted) <= tolerance * magnitude, [&] {
            return "element " + std::to_string(range.first + at) + " is " + std::to_string(as_double(found[at])) +
                   ", not " + std::to_string(wanted);
          })) {
        continue;
      }
      return;
    }
  }
}

template <class Make>
void check_policy(const std::string& name, int ranks, Make make) {
  on_ranks(ranks, [&](thread_rank& me) {
    const auto layout = small_layout();
    for (const int microbatches : {1, 2, 5}) {
      me.at([&] { return name + ", " + std::to_string(microbatches) + " microbatches"; });
      make(me, layout, [&](auto& gradients) {
        for (int step = 0; step < 2; ++step) {
          const auto totals = take_step(gradients, {me.rank(), ranks, microbatches, step});
          const auto expected = sequential_sum(layout, {0, ranks, microbatches, step});
          check_sum(me, gradients, expected.gradient, 1e-12);
          me.check(std::abs(totals.loss - expected.loss) <= 1e-12 * std::abs(expected.loss), "loss");
          me.check(totals.count == expected.count, "count");
          for (std::size_t i = 0; i < layout.parameters(); ++i) {
            me.check(gradients.was_used(i) == (i != never_used), [&] { return "use of " + layout[i].name; });
          }
        }
      });
    }
  });
}

TEST_CASE("sums over microbatches and ranks with unequal counts equal the sequential sums") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    check_policy("zero<0>, last", ranks, [](thread_rank& me, const auto& layout, auto use) {
      auto made = hocket::gradients<double>(me.comm(), layout, hocket::last_microbatch, hocket::zero<0>);
      use(made);
    });
    check_policy("zero<1>, last", ranks, [](thread_rank& me, const auto& layout, auto use) {
      auto made = hocket::gradients<double>(me.comm(), layout, hocket::last_microbatch, hocket::zero<1>);
      use(made);
    });
    check_policy("zero<0>, every", ranks, [](thread_rank& me, const auto& layout, auto use) {
      auto made = hocket::gradients<double>(me.comm(), layout, hocket::every_microbatch, hocket::zero<0>);
      use(made);
    });
    check_policy("zero<2>, every", ranks, [](thread_rank& me, const auto& layout, auto use) {
      auto made = hocket::gradients<double>(me.comm(), layout, hocket::every_microbatch, hocket::zero<2>);
      use(made);
    });
  }
}

TEST_CASE("sums equal the sequential sums in hybrid groups of shards and replicas") {
  for (const auto& [ranks, shards] : {std::pair(1, 1), {2, 1}, {4, 2}, {6, 3}, {6, 2}, {8, 4}}) {
    const auto with_groups = [shards = shards](auto make) {
      return [=](thread_rank& me, const auto& layout, auto use) {
        const auto inside = hocket::split(me.comm(), hocket::color{me.rank() / shards}, hocket::key{me.rank()});
        const auto across = hocket::split(me.comm(), hocket::color{me.rank() % shards}, hocket::key{me.rank()});
        auto made = make(hocket::hybrid(inside, across), layout);
        use(made);
      };
    };
    check_policy("hybrid zero<0>, last", ranks, with_groups([](const auto& group, const auto& layout) {
                   return hocket::gradients<double>(group, layout, hocket::last_microbatch, hocket::zero<0>);
                 }));
    check_policy("hybrid zero<1>, last", ranks, with_groups([](const auto& group, const auto& layout) {
                   return hocket::gradients<double>(group, layout, hocket::last_microbatch, hocket::zero<1>);
                 }));
    check_policy("hybrid zero<2>, every", ranks, with_groups([](const auto& group, const auto& layout) {
                   return hocket::gradients<double>(group, layout, hocket::every_microbatch, hocket::zero<2>);
                 }));
    check_policy("hybrid zero<3>, scatter", ranks, with_groups([](const auto& group, const auto& layout) {
                   return hocket::gradients<double>(group, layout, hocket::scatter_every_reduce_last, hocket::zero<3>);
                 }));
  }
}

/// Checks the bits of this rank's part of the exact sum of one step. `expected` is in the layout's order.
template <class Gradients>
void check_bits(thread_rank& me, Gradients& gradients, const std::vector<float>& expected) {
  for (std::size_t b = 0; b < gradients.layout().buckets(); ++b) {
    const auto range = gradients.own_range(b);
    for (std::size_t at = 0; at < range.size; ++at) {
      const float found = gradients.result(b)[at].value();
      if (!me.check(std::memcmp(&found, &expected[range.first + at], sizeof found) == 0,
                    [&] { return "element " + std::to_string(range.first + at) + " differs in its bits"; })) {
        return;
      }
    }
  }
}

TEST_CASE("exact sums have the same bits for any number of ranks and microbatches") {
  const auto layout = small_layout();
  const std::vector<float> expected = exact_sequential_sum(layout);
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_ranks(ranks, [&](thread_rank& me) {
      for (const int microbatches : {1, 2, 4}) {
        auto whole =
            hocket::gradients<hocket::exact_sum<float>>(me.comm(), layout, hocket::last_microbatch, hocket::zero<0>);
        take_exact_step(whole, me.rank(), ranks, microbatches);
        check_bits(me, whole, expected);
        auto parts =
            hocket::gradients<hocket::exact_sum<float>>(me.comm(), layout, hocket::every_microbatch, hocket::zero<2>);
        take_exact_step(parts, me.rank(), ranks, microbatches);
        check_bits(me, parts, expected);
      }
    });
  }
}

/// Each rank adds 1 + 2^-9, which is 1 in bfloat16, so that the sum shows which type was sent.
template <class Sharding, class When, class Options>
void check_travelled(thread_rank& me, When when, Sharding stage, const Options& options, float each_rank_added) {
  const hocket::parameter_layout layout({{"w", 1000}});
  auto made = hocket::gradients<float>(me.comm(), layout, when, stage, options);
  made.begin_microbatch(0, 1);
  for (float& each : made.of(0)) each = 1.0F + 1.0F / 512;
  made.ready(0);
  made.end_microbatch(0, 1);
  made.finish();
  const auto own = hocket::common_part(layout.of(0), made.own_range(0));
  for (std::size_t at = own.first; at < own.end(); ++at) {
    const float found = made.result(0)[at - made.own_range(0).first];
    if (!me.check(found == each_rank_added * static_cast<float>(me.size()), [&] {
          return std::to_string(me.size()) + " ranks of " + std::to_string(each_rank_added) + " give " +
                 std::to_string(found);
        })) {
      return;
    }
  }
}

TEST_CASE("floats are sent as bfloat16 if this is the wire type, and as floats otherwise") {
  for (const int ranks : {2, 3, 5, 7, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto narrow = hocket::with(hocket::wire<hocket::bfloat16>);
      const hocket::options<> plain;
      check_travelled(me, hocket::last_microbatch, hocket::zero<0>, narrow, 1.0F);
      check_travelled(me, hocket::last_microbatch, hocket::zero<1>, narrow, 1.0F);
      check_travelled(me, hocket::every_microbatch, hocket::zero<2>, narrow, 1.0F);
      check_travelled(me, hocket::last_microbatch, hocket::zero<0>, plain, 1.0F + 1.0F / 512);
      check_travelled(me, hocket::last_microbatch, hocket::zero<1>, plain, 1.0F + 1.0F / 512);
    });
  }
}

TEST_CASE("microbatches are added as floats, even if the wire type is bfloat16") {
  on_ranks(3, [](thread_rank& me) {
    auto made = hocket::gradients<float>(me.comm(), hocket::parameter_layout({{"w", 100}}), hocket::every_microbatch,
                                         hocket::zero<2>, hocket::with(hocket::wire<hocket::bfloat16>));
    for (int m = 0; m < 2; ++m) {
      made.begin_microbatch(m, 2);
      for (float& each : made.of(0)) each = m == 0 ? 256.0F : 0.25F;  // exact in bfloat16, as are their sums over ranks
      made.ready(0);
      made.end_microbatch(0, 1);
    }
    made.finish();
    const auto own = hocket::common_part(made.layout().of(0), made.own_range(0));
    for (const float each : made.result(0).first(own.size)) {
      me.check(each == 768.75F, [&] { return "768 + 0.75 = " + std::to_string(each); });
    }
  });
}

/// Sends a bucket unchanged, and records the order of buckets.
struct counting_reduction : hocket::plain_reduction {
  std::vector<std::size_t>* order;

  template <class Domain, class T, class Options>
  hocket::request all_reduce(const hocket::communicator<Domain>& comm, std::size_t bucket, std::span<T> values,
                             const Options& options, const std::source_location& site) const {
    order->push_back(bucket);
    return plain_reduction::all_reduce(comm, bucket, values, options, site);
  }
};

TEST_CASE("buckets are sent in one order, each as soon as all before it are complete") {
  on_ranks(3, [](thread_rank& me) {
    const hocket::parameter_layout layout({{"a", 64}, {"b", 64}, {"c", 64}, {"d", 64}}, {1, 1});
    me.check(layout.buckets() == 4, "four buckets");
    std::vector<std::size_t> order;
    counting_reduction counting;
    counting.order = &order;
    auto made = hocket::gradients<float>(me.comm(), layout, hocket::last_microbatch, hocket::zero<0>,
                                         hocket::options<>{}, counting);
    made.begin_microbatch(0, 2);
    for (std::size_t i = 0; i < 4; ++i) made.ready(i);
    made.end_microbatch(0, 1);
    me.check(order.empty(), "sent before the last microbatch");
    made.begin_microbatch(1, 2);
    const auto first = static_cast<std::size_t>(me.rank());
    const std::size_t ready[4] = {first, (first + 1) % 4, (first + 2) % 4, (first + 3) % 4};  // different on each rank
    std::size_t complete[4] = {};
    for (const std::size_t i : ready) {
      made.ready(i);
      complete[layout.bucket_of(i)] = 1;
      std::size_t leave = 0;
      while (leave < 4 && complete[leave] == 1) ++leave;
      me.check(order.size() == leave, [&] { return "sent: " + std::to_string(order.size()); });
    }
    made.end_microbatch(0, 1);
    made.finish();
    me.check(order == std::vector<std::size_t>{0, 1, 2, 3}, "the order of buckets");
  });
}

TEST_CASE("invalid calls in a step are rejected with the reason") {
  on_ranks(1, [](thread_rank& me) {
    const hocket::parameter_layout layout({{"weights", 3}, {"bias", 1}});
    auto made = hocket::gradients<float>(me.comm(), layout, hocket::last_microbatch, hocket::zero<0>);
    const auto refused = [&](const std::string& part, auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && std::string(found->what()).find(part) != std::string::npos,
               [&] { return "'" + part + "' is not in: " + (found ? found->what() : ""); });
    };
    refused("no microbatch has begun", [&] { made.of(0); });
    refused("no microbatch has begun", [&] { made.end_microbatch(0, 0); });
    refused("no microbatch has begun", [&] { made.finish(); });
    refused("a step must begin with microbatch 0", [&] { made.begin_microbatch(1, 2); });
    refused("a step must begin with microbatch 0", [&] { made.begin_microbatch(0, 0); });
    made.begin_microbatch(0, 2);
    refused("there are 2 parameters", [&] { made.ready(2); });
    refused("'weights' has 3 elements, but its gradient has 2", [&] { made.add(0, std::vector{1.F, 2.F}); });
    made.ready(0);
    refused("'weights' is already ready in microbatch 0", [&] { made.ready(0); });
    refused("'weights' is already ready", [&] { made.of(0); });
    refused("microbatch 0 has not ended", [&] { made.begin_microbatch(1, 2); });
    refused("a microbatch has not ended", [&] { made.finish(); });
    made.end_microbatch(0, 1);
    refused("only 1 of 2 microbatches", [&] { made.finish(); });
    refused("this step has begun 1 of 2 microbatches", [&] { made.begin_microbatch(1, 3); });
    made.begin_microbatch(1, 2);
    made.end_microbatch(0, 1);
    refused("call finish", [&] { made.begin_microbatch(2, 3); });
    refused("norm: the step's sums are not available yet", [&] { hocket::norm(made); });
    made.finish();
    me.check(made.was_used(0) && !made.was_used(1), "bias was never ready");
  });
}

}  // namespace
