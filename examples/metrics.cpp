// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Three ranks count their steps. Each writes a log and events for TensorBoard. The folder of an argument remains.
// expect: 300 steps; rank 2 has the greatest loss, 0.25
#include <hocket/group/local.hpp>
#include <hocket/observe/json_lines.hpp>
#include <hocket/observe/over_ranks.hpp>
#include <hocket/observe/tensorboard.hpp>

#include <cstdio>
#include <filesystem>
#include <string>

int main(int count, char** arguments) {
  const auto temporary = std::filesystem::temp_directory_path() / "hocket-example-metrics";
  const std::string run = count > 1 ? arguments[1] : temporary.string();
  hocket::local::run(3, [&](const hocket::local::communicator& comm) {
    const std::string mine = run + "/rank-" + std::to_string(comm.rank());
    hocket::observe::registry metrics;
    auto& steps = metrics.counter("steps", "steps of the optimizer");
    auto& loss = metrics.gauge("loss", "training loss, in nats per byte");
    hocket::observe::json_lines log(mine + "/log.jsonl", metrics, {.rank = comm.rank()});
    hocket::observe::tensorboard board(mine, metrics);
    log.start("example", comm.size());
    for (int step = 1; step <= 100; ++step) {
      steps.add();
      loss.set(5.0 / step + 0.1 * comm.rank());  // here would be a training
      board.write(step);
    }
    const auto all = hocket::observe::read_over_ranks(comm, metrics);  // sorted by name: loss, steps
    if (comm.rank() == 0)
      std::printf("%g steps; rank %d has the greatest loss, %g\n", all[1].sum, all[0].rank_of_greatest,
                  all[0].greatest);
    log.end("done", comm.size());
  });
  std::filesystem::remove_all(temporary);
}
