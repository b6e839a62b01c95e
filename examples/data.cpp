// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Three ranks use a part of an epoch of a token file; two ranks continue where these have stopped.
// expect: 3 ranks: position 320 of epoch 0.*2 ranks: position 0 of epoch 1, the numbers in sum are 499500
#include <hocket/data/loader.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/token_file.hpp>
#include <hocket/hocket.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>

int main() {
  const auto path = std::filesystem::temp_directory_path() / "hocket-example-tokens.bin";
  std::ofstream out(path, std::ios::binary);  // 1000 samples of 64 tokens, each of which is the sample's number
  for (int i = 0; i <= 64 * 1000; ++i) out.put(static_cast<char>(i / 64)).put(static_cast<char>(i / 64 / 256));
  out.close();
  const hocket::data::token_file file(path);
  const auto samples = file.samples(64);
  const hocket::data::order order(samples.size(), 7);  // number of samples, and seed
  hocket::data::cursor at;                             // belongs into a checkpoint
  unsigned sum = 0;
  for (const int ranks : {3, 2}) {
    hocket::local::run(ranks, [&, from = at](const hocket::local::communicator& comm) {
      hocket::data::loader batches(order, samples, hocket::data::share(comm), {.batch = 32, .prefetch = 4}, from);
      unsigned mine[1] = {};
      for (const auto& batch : batches.epoch()) {
        for (std::size_t i = 0; i < batch.samples.size(); i += 65) mine[0] += batch.samples[i];
        if (ranks == 3 && batches.cursor().position == 320) break;
      }
      hocket::all_reduce(comm, hocket::in_place(mine));
      if (comm.rank() != 0) return;
      at = batches.cursor();
      std::printf("%d ranks: position %d of epoch %d, the numbers in sum are %u\n", ranks,
                  static_cast<int>(at.position), static_cast<int>(at.epoch), sum += mine[0]);
    });
  }
  std::filesystem::remove(path);
}
