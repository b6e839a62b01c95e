// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What TensorBoard shows of a training that was restarted.
#include "run_metrics.hpp"

#include "observe/shown_steps.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace gpt;
using observe_test::shown_steps;

/// Shows the steps after `taken`, until `last`, of a training of 9 steps.
void show_steps(const std::string& folder, int taken, int last) {
  run_metrics metrics({.log = "", .tensorboard = folder, .prometheus = ""}, 0, 1, 0, taken, 9, 1, "a schedule");
  for (int step = taken; step < last; ++step) metrics.add(step_record());
}

}  // namespace

TEST_CASE("TensorBoard shows each step once, whether a checkpoint precedes the restart or not") {
  const hocket_test::scratch_directory folder;
  show_steps(folder.path(), 0, 2);  // ends before its first checkpoint
  show_steps(folder.path(), 0, 7);
  show_steps(folder.path(), 5, 6);
  show_steps(folder.path(), 5, 9);
  CHECK(shown_steps(folder.path(), "loss") == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(shown_steps(folder.path(), "schedule") == std::vector<std::uint64_t>{1, 6});
}
