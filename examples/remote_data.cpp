// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two ranks read shards of tokens from remote storage, through a cache that has room for a third of them.
// expect: position 0 of epoch 1, the numbers in sum are 1619100
#include <hocket/data/cache/remote_shards.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/remote/folder_source.hpp>
#include <hocket/hocket.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

int main() {
  namespace data = hocket::data;
  const auto folder = std::filesystem::temp_directory_path() / "hocket-example-remote";
  std::filesystem::create_directories(folder);
  std::vector<std::string> names;
  for (int shard = 0; shard < 6; ++shard) {  // 300 samples of 64 tokens, which are its number
    names.push_back("tokens-" + std::to_string(shard));
    std::ofstream out(folder / names.back(), std::ios::binary);
    for (int i = 0; i <= 64 * 300; ++i) {
      const int number = shard * 300 + i / 64;
      out.put(static_cast<char>(number)).put(static_cast<char>(number / 256));
    }
  }
  data::folder_source storage(folder);  // or another remote_source, with URLs as names
  hocket::local::run(2, [&](const hocket::local::communicator& comm) {
    data::file_cache cache(folder / "cache", storage, {.bytes = 80'000});
    data::remote_token_shards shards(cache, names, 64);
    const data::order order(data::listed_shards{shards.sizes(), 1}, 7);           // groups of one shard
    const data::group_reader samples(shards, order, {comm.rank(), comm.size()});  // of the ranks of this host
    data::loader batches(order, samples, data::share(comm), {.batch = 32, .prefetch = 4});
    unsigned sum[1] = {};
    for (const auto& batch : batches.epoch()) {
      for (std::size_t i = 0; i < batch.samples.size(); i += 65) sum[0] += batch.samples[i];
    }
    hocket::all_reduce(comm, hocket::in_place(sum));
    if (comm.rank() != 0) return;
    std::printf("position %d of epoch %d, the numbers in sum are %u\n", static_cast<int>(batches.cursor().position),
                static_cast<int>(batches.cursor().epoch), sum[0]);
  });
  std::filesystem::remove_all(folder);
}
