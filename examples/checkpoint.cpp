// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four ranks save the state of a training; three others load it, and continue at the step after. The folder of an
// argument remains.
// expect: 3 ranks continue at step 201 with weights 0 to 999
#include <hocket/checkpoint/store.hpp>
#include <hocket/group/local.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <vector>

int main(int count, char** arguments) {
  const auto temporary = std::filesystem::temp_directory_path() / "hocket-example-checkpoints";
  const std::filesystem::path folder = count > 1 ? arguments[1] : temporary;
  for (const int ranks : {4, 3}) {
    hocket::local::run(ranks, [&](const hocket::local::communicator& comm) {
      const auto r = static_cast<std::uint64_t>(comm.rank()), p = static_cast<std::uint64_t>(comm.size());
      const std::uint64_t begin = 1000 * r / p, end = 1000 * (r + 1) / p;
      std::vector<float> weights(end - begin);  // this rank's slice of 1000
      std::iota(weights.begin(), weights.end(), ranks == 4 ? static_cast<float>(begin) : 0);
      std::uint64_t step = 200;

      hocket::checkpoint::state now;
      now.add("weights", {1000}, {{begin}, {end - begin}}, weights);
      now.add("step", step);
      hocket::checkpoint::store saved(folder, comm);
      if (ranks == 4) saved.save(step, now);
      if (ranks == 3 && saved.load_newest(now) && r == 2)
        std::printf("3 ranks continue at step %d with weights 0 to %g\n", static_cast<int>(step + 1), weights.back());
    });
  }
  std::filesystem::remove_all(temporary);
}
