// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Three processes record what they do, with their loss and their memory, for Perfetto (ui.perfetto.dev). The file of an
// argument remains.
// needs: ucx
// expect: 30 sums of 3 ranks
#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/memory_ledger.hpp>
#include <hocket/group/adapted.hpp>
#include <hocket/observe/job_counters.hpp>
#include <hocket/observe/trace_counters.hpp>
#include <hocket/ucx.hpp>

#include <cstdio>
#include <filesystem>
#include <memory_resource>
#include <string>
#include <vector>

int main(int count, char** arguments) {
  const auto temporary = std::filesystem::temp_directory_path() / "hocket-example-trace.json";
  const std::string file = count > 1 ? arguments[1] : temporary.string();
  const auto results = hocket::launch::run_processes(3, [&](const hocket::bootstrap::world_description& where) {
    const auto comm = hocket::traced(hocket::ucx::connect(where));
    hocket::observe::registry metrics;
    hocket::memory_ledger ledger;
    hocket::observe::watch(metrics, ledger);
    auto& loss = metrics.gauge("loss", "training loss, in nats per byte");
    hocket::observe::trace_counters tracks(comm, metrics, {"loss", "hocket_memory_bytes"});
    for (int step = 1; step <= 10; ++step) {
      std::pmr::vector<float> gradient(10'000 * static_cast<std::size_t>(step), 1.0F, ledger.account("gradients"));
      hocket::all_reduce(comm, hocket::in_place(gradient), std::plus<>{}, hocket::with(hocket::ring));
      loss.set(5.0 / step);
      tracks.write();
    }
    hocket::write_trace(comm, file);
    return 0;
  });
  const std::string failed = hocket::launch::describe_failures(results);
  std::printf("%s\n", failed.empty() ? "30 sums of 3 ranks" : failed.c_str());
  std::filesystem::remove(temporary);
  return failed.empty() ? 0 : 1;
}
