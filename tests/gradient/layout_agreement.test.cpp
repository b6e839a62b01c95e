// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Layouts that differ between ranks, even with equal numbers of bytes, cause an error on all ranks that names both.
#include <hocket/gradient/layout_agreement.hpp>

#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/gradient/accumulator.hpp>
#include <hocket/group/split.hpp>
#include <hocket/optimizer/parameters.hpp>

#include <string>
#include <utility>
#include <vector>

namespace {

using hocket::parameter_layout;
using hocket::undecayed;
using hocket_test::on_ranks;
using hocket_test::thread_rank;

const std::vector<hocket::parameter> ordinary = {{"embedding", 100}, {"weights", 64}, {"gain", 64}};

struct difference {
  parameter_layout layout;
  std::string words;  ///< part of the error
};

std::vector<difference> differences() {
  return {
      {parameter_layout({{"embedding", 100}, {"gain", 64}, {"weights", 64}}),
       "has parameter 1 'weights' of 64 elements in bucket 0, rank R has parameter 1 'gain' of 64 elements in bucket "
       "0"},
      {parameter_layout({{"embedding", 101}, {"weights", 64}, {"gain", 64}}),
       "has parameter 0 'embedding' of 100 elements in bucket 0, rank R has parameter 0 'embedding' of 101 elements"},
      {parameter_layout({{"embedding", 100}, {"weights", 64}}),
       "has parameter 2 'gain' of 64 elements in bucket 0, rank R has no more parameters"},
      {parameter_layout({{"embedding", 100}, {"weights", 64}, {"gain", 64}, {"bias", 1}}),
       "has no more parameters, rank R has parameter 3 'bias' of 1 elements in bucket 0"},
      {parameter_layout(), "rank R has no more parameters"},
      {parameter_layout(ordinary, {.first_elements = 1, .elements = 1}),
       "rank R has parameter 0 'embedding' of 100 "
       "elements in bucket 2"},
      {parameter_layout(ordinary, {.order = hocket::bucket_order::forward}),
       "rank R has buckets that are reduced in forward order"},
      {parameter_layout({{"embedding", 100}, {"weights", 64}, {"gain", 64, false}}), "in bucket 0, not in norms"},
      {parameter_layout({{"embedding", 100}, {"weights", 64}, undecayed({"gain", 64})}), "in bucket 0, not decayed"},
      {parameter_layout({{"embedding", 100}, {"weights", 64}, {.name = "gain", .elements = 64, .model_ranks = 2}}),
       "in bucket 0, on 2 ranks of the model"},
  };
}

/// Checks that `make(layout)` fails on every rank with the expected text, and that the communicator still works.
template <class Make>
void check_refused(thread_rank& me, int culprit, Make make) {
  for (const difference& each : differences()) {
    const parameter_layout layout = me.rank() == culprit ? each.layout : parameter_layout(ordinary);
    std::string words = each.words;
    if (const auto at = words.find("rank R"); at != std::string::npos) {
      words.replace(at, 6, "rank " + std::to_string(culprit));
    }
    const auto found = me.expect(hocket::errc::mismatch, [&] { make(layout); });
    me.check(found && std::string(found->what()).find(words) != std::string::npos,
             [&] { return "'" + words + "' is not in: " + (found ? found->what() : ""); });
    int one = 1;
    hocket::all_reduce(me.comm(), hocket::in_place(std::span(&one, 1)));
    me.check(one == me.size(), "the communicator has failed");
  }
}

TEST_CASE("layouts that differ are rejected on every rank, with the first parameter that differs") {
  for (const int ranks : {2, 3, 5, 8}) {
    on_ranks(ranks, [ranks](thread_rank& me) {
      check_refused(me, ranks - 1, [&](const parameter_layout& layout) {
        hocket::gradients<float>(me.comm(), layout, hocket::last_microbatch, hocket::zero<0>);
      });
      check_refused(me, ranks / 2, [&](const parameter_layout& layout) {
        hocket::parameters<float>(me.comm(), layout, hocket::zero<1>);
      });
    });
  }
}

TEST_CASE("a replica with a different layout is rejected on all ranks that share a part with it") {
  on_ranks(4, [](thread_rank& me) {
    const auto inside = hocket::split(me.comm(), hocket::color{me.rank() / 2}, hocket::key{me.rank()});
    const auto across = hocket::split(me.comm(), hocket::color{me.rank() % 2}, hocket::key{me.rank()});
    const parameter_layout layout({{me.rank() < 2 ? "one" : "other", 64}});
    const auto found = me.expect(hocket::errc::mismatch, [&] {
      hocket::gradients<float>(hocket::hybrid(inside, across), layout, hocket::last_microbatch, hocket::zero<1>);
    });
    me.check(found && std::string(found->what()).find("rank 0 has parameter 0 'one' of 64") != std::string::npos,
             [&] { return found ? found->what() : ""; });
  });
}

TEST_CASE("equal layouts agree, even if the limits of buckets in flight differ") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto in_flight = static_cast<std::size_t>(me.rank());
      for (const auto& layout : {parameter_layout(), parameter_layout(ordinary, {.in_flight = in_flight})}) {
        hocket::gradients<float>(me.comm(), layout, hocket::every_microbatch, hocket::zero<2>);
        hocket::parameters<float>(me.comm(), layout, hocket::zero<3>);
      }
    });
  }
}

}  // namespace
