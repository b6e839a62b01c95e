// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans put on streams give the bits that the host's engine gives for the same plan, and what is put there is what the
// plan lists.
#include "engine/stream/device_ranks.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/communicator/local.hpp>
#include <hocket/engine/stream/operation.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace hocket_test;
namespace plan = hocket::plan;

TEST_CASE("two ranks reduce by two_shot on their streams") {
  device_ranks all(2);
  all.run_in_group([&](device_rank& me) -> std::string {
    const std::vector<float> mine = samples<float>(me.rank(), 1001);
    float* const in = me.upload(mine);
    float* const out = me.allocate<float>(mine.size());
    const std::plus<> op;
    std::unique_ptr<device_operation> work;
    hocket::failure found = me.bind({.plan = plan::two_shot{},
                                     .block_elements = mine.size(),
                                     .leaf = &queue_leaf_of<std::plus<>, float>,
                                     .operation = &op,
                                     .in = reinterpret_cast<ipc::address>(in),
                                     .out = reinterpret_cast<ipc::address>(out)},
                                    work);
    if (!found) found = work->enqueue(me.stream());
    if (!found) found = work->finish(soon());
    if (found) return found.message();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (out[i] != sample<float>(0, i) + sample<float>(1, i)) return "wrong at " + std::to_string(i);
    }
    return "";
  });
}
