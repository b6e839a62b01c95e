// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four ranks save the state of a training; three others load it. The folder of an argument remains.
// expect: 3 ranks continue at step 201 with weights 0 to 999
#include <hocket/checkpoint/store.hpp>
#include <hocket/data/share.hpp>
#include <hocket/group/local.hpp>

#include <cstdio>
#include <filesystem>
#include <numeric>

int main(int count, char** arguments) {
  const std::filesystem::path folder = count > 1 ? arguments[1] : "checkpoints-of-example";
  for (const int ranks : {4, 3}) {
    hocket::local::run(ranks, [&](const auto& comm) {
      const auto own = hocket::data::share(comm).of({0, 1000});  // this rank's slice of 1000 weights
      std::vector<float> weights(own.size());
      if (ranks == 4) std::iota(weights.begin(), weights.end(), static_cast<float>(own.begin));
      std::uint64_t step = 200;
      hocket::checkpoint::state now;
      now.add_slice("weights", 1000, own.begin, weights);
      now.add("step", step);
      hocket::checkpoint::store saved(folder, comm);
      if (ranks == 4) saved.save(step, now);
      if (ranks == 3 && saved.load_newest(now) && comm.rank() == 2)
        std::printf("3 ranks continue at step %d with weights 0 to %g\n", static_cast<int>(step + 1), weights.back());
    });
  }
  if (count == 1) std::filesystem::remove_all(folder);
}
