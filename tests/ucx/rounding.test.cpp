// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sums of ill-conditioned data: each bit is that of the plan's order of combination with its accumulator.
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/reference.hpp"
#include "ucx/ranks.hpp"

#include <hocket/operation/operations.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace ucx_test;
using namespace hocket_test;
namespace plan = hocket::plan;

struct scene {
  communicator& comm;
  findings& found;
};

template <class T, class Op>
void check(const scene& here, const plan::any_algorithm& algorithm, std::size_t size, bool in_place, const Op& op) {
  const int ranks = here.comm.size();
  const auto own = static_cast<std::size_t>(here.comm.rank());
  const auto inputs = samples_of_all<T>(ranks, size);
  const auto expected =
      evaluate<T, Op>(algorithm, ranks, layout_for(algorithm, ranks, size), inputs, op, in_place)[own];
  std::vector<T> in = inputs[own], out(size);
  const auto options = hocket::with(hocket::algorithm(algorithm));
  if (in_place) {
    out = in;
    hocket::all_reduce(here.comm, hocket::in_place(out), op, options);
  } else {
    hocket::all_reduce(here.comm, in, out, op, options);
  }
  here.found.expect(same_bytes(std::span<const T>(out), std::span<const T>(expected)),
                    std::string(algorithm.name()) + " of " + std::to_string(size) + (in_place ? ", in place" : ""));
}

template <class T, class Op>
void check_plans(const scene& here, const Op& op) {
  for (const std::size_t size : std::vector<std::size_t>{0, 1, 3, 14, 15, 1001, 17'011}) {
    for (const bool in_place : {false, true}) {
      const auto by = [&](const plan::any_algorithm& algorithm) { check<T>(here, algorithm, size, in_place, op); };
      by(plan::recursive_doubling{});
      by(plan::double_tree{4});
      by(plan::ring_all_reduce{});
      by(plan::halving_doubling{});
      if (!has_windows(here.comm)) continue;
      by(plan::one_shot{});
      by(plan::two_shot{});
    }
  }
}

}  // namespace

TEST_CASE("rounded sums between processes have the bits of their plan's order of combination") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [](communicator& comm, findings& found) {
              const scene here{comm, found};
              check_plans<float>(here, std::plus<>{});
              check_plans<float>(here, hocket::average{});
              check_plans<hocket::bfloat16>(here, std::plus<>{});
              check_plans<hocket::float8_e4m3>(here, std::plus<>{});
            }) == "");
    }
  }
}
