// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Remote shards in groups: each is downloaded once per host and epoch, however many ranks read it and however small the
/// cache is; ranks wait for the slowest, and not for dead ones.
#include "data/cache/local_source.hpp"
#include "data/cache/processes.hpp"
#include "support/catch.hpp"

#include <hocket/core/error.hpp>
#include <hocket/core/platform/locked_file.hpp>
#include <hocket/data/cache/group_reader.hpp>
#include <hocket/data/cache/remote_shards.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/share.hpp>
#include <hocket/data/tar_index.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace cache_test;
using namespace hocket::data;
using hocket::errc;

constexpr std::size_t sample_tokens = 50, samples_of_shard = 20;

/// Files of tokens, of 20 samples each, and the last of 7. The tokens of a sample are its number in the data set.
struct token_storage : storage {
  explicit token_storage(std::size_t shards) : storage(0, 0) {
    for (std::size_t shard = 0; shard < shards; ++shard) {
      std::string bytes;
      const std::size_t samples = shard + 1 < shards ? samples_of_shard : 7;
      for (std::size_t i = 0; i <= samples * sample_tokens; ++i) {
        const std::size_t number = shard * samples_of_shard + i / sample_tokens;
        (bytes += static_cast<char>(number & 255)) += static_cast<char>(number >> 8);
      }
      names.push_back("tokens-" + std::to_string(shard));
      write(names.back(), bytes);
    }
  }

  static constexpr std::uint64_t shard_bytes = (samples_of_shard * sample_tokens + 1) * 2;
  static constexpr std::uint64_t group_shards = 2;
  /// Room for two groups.
  cache_options options(std::chrono::nanoseconds timeout = 30s) const {
    return {.bytes = 2 * group_shards * shard_bytes, .piece_bytes = 500, .timeout = timeout};
  }
};

order order_of(const remote_token_shards& shards) {
  return order(listed_shards{shards.sizes(), token_storage::group_shards}, 7);
}

/// Loads `epochs` epochs as one rank of several. Returns what is wrong, and appends the samples to `used`.
std::string load(token_storage& files, const host_reader& self, std::uint64_t epochs, std::size_t threads,
                 const std::string& used) {
  file_cache cache(files.folder(), files.source, files.options());
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const group_reader tested(shards, in_order, self);
  loader batches(in_order, tested, share(self.reader, self.readers), {.batch = 16, .prefetch = 3, .threads = threads});
  std::ofstream out(used);
  std::mt19937 random(static_cast<unsigned>(self.reader));
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    const epoch_order expected = in_order.epoch(epoch);
    for (const auto& batch : batches.epoch()) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
      if (batch.samples.size() != batch.own.size() * (sample_tokens + 1)) return "a batch has a wrong size";
      for (std::uint64_t i = 0; i < batch.own.size(); ++i) {
        const std::uint64_t sample = batch.samples[i * (sample_tokens + 1)];
        if (sample != expected[batch.own.begin + i]) return "a sample is wrong";
        out << epoch << ' ' << sample << '\n';
      }
      out.flush();
    }
  }
  return "";
}

/// Returns how many bytes of each file may be read in a number of epochs: the loaders have also loaded up to the second
/// group of the next one, and its third group was downloaded.
std::map<std::string, std::uint64_t> most_reads(const remote_token_shards& shards, std::uint64_t epochs) {
  std::map<std::string, std::uint64_t> result;
  for (const remote_file& each : shards.files()) result[each.name] = epochs * each.bytes;
  for (const std::uint64_t group : {0U, 1U, 2U}) {
    for (const std::uint64_t shard : order_of(shards).epoch(epochs).shards_of(group))
      result[shards.files()[shard].name] += shards.files()[shard].bytes;
  }
  return result;
}

/// Returns what `body` raises; empty if nothing.
std::string reader_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const hocket::error& cause) {
    return cause.reason();
  }
  return "";
}

}  // namespace

TEST_CASE("each shard is downloaded once per host and epoch, from a data set of three times the cache") {
  constexpr std::uint64_t epochs = 2;
  for (const int ranks : {1, 2, 3, 5}) {
    const std::size_t threads = ranks == 3 ? 2 : 1;
    INFO(ranks << " ranks");
    token_storage files(12);
    files.source.delay = 20us;
    const auto used_by = [&](int rank) { return files.scratch() + "/used-" + std::to_string(rank); };
    processes all(ranks, [&](int rank) { return load(files, {rank, ranks}, epochs, threads, used_by(rank)); });
    CHECK(all.end() == "");

    std::multiset<std::pair<std::uint64_t, std::uint64_t>> used, expected;
    for (int rank = 0; rank < ranks; ++rank) {
      std::ifstream in(used_by(rank));
      for (std::pair<std::uint64_t, std::uint64_t> each; in >> each.first >> each.second;) used.insert(each);
    }
    file_cache cache(files.folder(), files.source, files.options());
    remote_token_shards shards(cache, files.names, sample_tokens);
    const order in_order = order_of(shards);
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::uint64_t sample = 0; sample < in_order.size(); ++sample) expected.emplace(epoch, sample);
    }
    CHECK(used == expected);

    const auto most = most_reads(shards, epochs);
    const auto read = files.source.bytes_read();
    std::uint64_t in_sum = 0;
    for (const auto& [name, bytes] : read) {
      INFO(name);
      CHECK(bytes <= most.at(name));
      in_sum += bytes;
    }
    CHECK(read.size() == files.names.size());
    CHECK(in_sum > (12 + 12 - 4 - 1) * token_storage::shard_bytes);  // the cache holds a third of the data set
  }
}

TEST_CASE("ranks continue without one that is killed, and download no shard again") {
  token_storage files(12);
  files.source.delay = 100us;
  processes all(3, [&](int rank) {
    return load(files, {rank, 3}, 1, 1, files.scratch() + "/used-" + std::to_string(rank));
  });
  all.begin();
  for (const char* rank : {"0", "1", "2"}) {  // a rank that is killed before it starts is waited for
    const std::string used = files.scratch() + "/used-" + rank;
    while (hocket_test::read_file(used).empty()) std::this_thread::sleep_for(1ms);
  }
  all.kill(1);
  CHECK(all.end() == "");
  file_cache cache(files.folder(), files.source, files.options());
  const auto most = most_reads(remote_token_shards(cache, files.names, sample_tokens), 1);
  for (const auto& [name, bytes] : files.source.bytes_read()) {
    INFO(name);
    CHECK(bytes <= most.at(name) + 500);  // the victim's piece may be read again
  }
}

TEST_CASE("a reader is never two groups ahead of the slowest") {
  token_storage files(12);
  file_cache cache(files.folder(), files.source, files.options(100ms));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const auto epoch = in_order.epoch(0);
  const group_reader fast(shards, in_order, {0, 2});
  decltype(fast)::batch_type batch;
  const auto first_of = [&](std::uint64_t group) {
    std::uint64_t position = 0;
    while (epoch.group_at(position) != group) ++position;
    return position;
  };
  CHECK_THAT(reader_error([&] { fast.append(epoch[0], batch); }),
             Catch::Contains("reader 1 of 2 of '") && Catch::Contains("' has not started within 0.1 s"));
  CHECK(files.source.bytes_read().empty());
  {
    const group_reader slow(shards, in_order, {1, 2});
    for (const std::uint64_t group : {0U, 1U})
      CHECK(reader_error([&] { fast.append(epoch[first_of(group)], batch); }) == "");
    fast.loaded_until({0, first_of(2)});
    batch.clear();
    CHECK_THAT(reader_error([&] { fast.append(epoch[first_of(2)], batch); }),
               Catch::Contains("reader 1 of 2 of '") && Catch::Contains("' has been in group 0 of epoch 0 for 0.1 s"));
    slow.loaded_until({0, first_of(1)});
    CHECK(reader_error([&] { fast.append(epoch[first_of(2)], batch); }) == "");
    CHECK(reader_error([&] { fast.append(epoch[first_of(3)], batch); }) != "");
    slow.loading_ends();
    CHECK(reader_error([&] { fast.append(epoch[first_of(3)], batch); }) == "");
    slow.loaded_until({0, first_of(1)});
    CHECK(reader_error([&] { fast.append(epoch[first_of(4)], batch); }) != "");
  }
  batch.clear();
  fast.loaded_until({0, first_of(4)});
  CHECK(reader_error([&] { fast.append(epoch[first_of(5)], batch); }) == "");  // the other one is gone
}

TEST_CASE("a reader that ends before another one has asked for it is not waited for, one of an earlier job is") {
  token_storage files(12);
  file_cache cache(files.folder(), files.source, files.options(100ms));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  group_reader<remote_token_shards>::batch_type batch;
  {
    const group_reader tested(shards, in_order, {0, 2});
    { const group_reader brief(shards, in_order, {1, 2}); }
    CHECK(reader_error([&] { tested.append(in_order.epoch(0)[0], batch); }) == "");
    CHECK_THAT(reader_error([&] { tested.append(in_order.epoch(0)[200], batch); }),
               Catch::Contains("a shard is asked for that is neither in group 0 of epoch 0 nor in the next one"));
  }
  const auto count_files = [&] {
    return std::count_if(std::filesystem::directory_iterator(files.folder()), {},
                         [](const auto& each) { return each.path().filename().string().starts_with("reader-"); });
  };
  CHECK(count_files() == 0);
  processes killed(1, [&](int) -> std::string {
    const group_reader earlier(shards, in_order, {1, 2});
    ::kill(::getpid(), SIGKILL);
    return "not killed";
  });
  CHECK(killed.end() == "");
  CHECK(count_files() == 1);
  std::this_thread::sleep_for(20ms);  // more than a tick of the clock of the file system
  const group_reader tested(shards, in_order, {0, 2});
  CHECK_THAT(reader_error([&] { tested.append(0, batch); }), Catch::Contains("reader 1 of 2 of '"));
}

TEST_CASE("readers of another order are not those that a reader waits for") {
  token_storage files(12);
  file_cache cache(files.folder(), files.source, files.options(100ms));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const group_reader tested(shards, in_order, {0, 2});
  const group_reader of_other_seed(shards, order(listed_shards{shards.sizes(), 2}, 8), {1, 2});
  const group_reader of_other_groups(shards, order(listed_shards{shards.sizes(), 1}, 7), {1, 2});
  group_reader<remote_token_shards>::batch_type batch;
  CHECK_THAT(reader_error([&] { tested.append(in_order.epoch(0)[0], batch); }), Catch::Contains("has not started"));
  const group_reader right(shards, in_order, {1, 2});
  CHECK(reader_error([&] { tested.append(in_order.epoch(0)[0], batch); }) == "");
}

TEST_CASE("a shard that the slowest reader has not used is kept, although its last use is the longest ago") {
  token_storage files(12);
  file_cache cache(files.folder(), files.source, files.options(100ms));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const auto epoch = in_order.epoch(0);
  const group_reader fast(shards, in_order, {0, 2}), slow(shards, in_order, {1, 2});
  const auto use = [&](const auto& reader, std::uint64_t group) {
    group_reader<remote_token_shards>::batch_type batch;
    for (const std::uint64_t shard : epoch.shards_of(group)) reader.append(shard * samples_of_shard, batch);
  };
  const auto move_to = [&](const auto& reader, std::uint64_t group) {
    std::uint64_t position = 0;
    while (epoch.group_at(position) != group) ++position;
    reader.loaded_until({0, position});
  };
  for (std::uint64_t group = 0; group + 2 < epoch.groups(); ++group) {
    if (group == 0) use(fast, 0);
    if (group == 0) use(fast, 1);
    move_to(fast, group + 2);
    use(slow, group);  // after the shards of the next group were used
    move_to(slow, group + 1);
    use(fast, group + 2);
  }
  for (const std::uint64_t group : {epoch.groups() - 2, epoch.groups() - 1}) use(slow, group);
  for (const auto& [name, bytes] : files.source.bytes_read()) {
    INFO(name);
    CHECK(bytes <= token_storage::shard_bytes);
  }
  CHECK(files.source.bytes_read().size() == files.names.size());
}

TEST_CASE("the group of a reader and the next one are downloaded before they are used, and no others") {
  token_storage files(12);
  file_cache cache(files.folder(), files.source, files.options());
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const auto epoch = in_order.epoch(0);
  const group_reader tested(shards, in_order);
  std::uint64_t expected = 0;
  for (std::uint64_t group = 0; group + 1 < epoch.groups(); ++group) {
    INFO("group " << group);
    std::uint64_t position = 0;
    while (epoch.group_at(position) != group) ++position;
    tested.loaded_until({0, position});
    for (const std::uint64_t each : {group, group + 1}) {
      if (each == group && group > 0) continue;
      for (const std::uint64_t shard : epoch.shards_of(each)) expected += shards.files()[shard].bytes;
    }
    const auto read = [&] {
      std::uint64_t sum = 0;
      for (const auto& [name, bytes] : files.source.bytes_read()) sum += bytes;
      return sum;
    };
    const auto begin = std::chrono::steady_clock::now();
    while (read() < expected && std::chrono::steady_clock::now() - begin < 20s) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(5ms);
    CHECK(read() == expected);
  }
}

TEST_CASE("a reader that is destroyed ends its download after a piece, and another one continues") {
  token_storage files(12);
  std::atomic<int> pieces{0};
  files.source.before_read = [&](const remote_file&, std::uint64_t) {
    ++pieces;
    std::this_thread::sleep_for(5ms);
    return failure();
  };
  cache_options options = files.options();
  options.piece_bytes = 10;
  file_cache cache(files.folder(), files.source, options);
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  {
    const group_reader tested(shards, in_order);
    tested.loaded_until({0, 0});
    while (pieces < 2) std::this_thread::sleep_for(100us);
  }
  CHECK(pieces < 200);  // of the 201 of a shard
  files.source.before_read = nullptr;
  const group_reader tested(shards, in_order);
  group_reader<remote_token_shards>::batch_type batch;
  for (const std::uint64_t shard : in_order.epoch(0).shards_of(0)) tested.append(shard * samples_of_shard, batch);
  for (const auto& [name, bytes] : files.source.bytes_read()) CHECK(bytes <= token_storage::shard_bytes);
}

TEST_CASE("an exception of a source is that of the call that needs the shard") {
  token_storage files(12);
  std::atomic<bool> throws{true};
  std::atomic<int> thrown{0};
  files.source.before_read = [&](const remote_file&, std::uint64_t) {
    if (!throws) return failure();
    ++thrown;
    throw std::runtime_error("the source has no connection");
  };
  file_cache cache(files.folder(), files.source, files.options());
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const group_reader tested(shards, in_order);
  tested.loaded_until({0, 0});
  const auto begin = std::chrono::steady_clock::now();
  while (thrown == 0 && std::chrono::steady_clock::now() - begin < 20s) std::this_thread::sleep_for(100us);
  CHECK(thrown == 1);  // in the thread that downloads
  group_reader<remote_token_shards>::batch_type batch;
  const std::uint64_t sample = in_order.epoch(0).shards_of(0)[0] * samples_of_shard;
  CHECK_THROWS_WITH(tested.append(sample, batch), "the source has no connection");
  throws = false;
  tested.append(sample, batch);
  CHECK(batch.size() == sample_tokens + 1);
}

TEST_CASE("the end of a loader does not wait for a reader that makes no progress") {
  token_storage files(12);
  file_cache cache(files.folder(), files.source, files.options(60s));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  const group_reader stopped(shards, in_order, {1, 2}), tested(shards, in_order, {0, 2});
  const auto begin = std::chrono::steady_clock::now();
  {
    loader batches(in_order, tested, share(0, 1), {.batch = 16, .prefetch = 100});
    batches.next();
    while (batches.times().loading < 1ms) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);  // the loader is at the third group now
  }
  CHECK(std::chrono::steady_clock::now() - begin < 30s);
}

TEST_CASE("readers that do not fit the shards, the cache or each other are refused") {
  token_storage files(6);
  file_cache cache(files.folder(), files.source, files.options(100ms));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order valid = order_of(shards);
  using reader = group_reader<remote_token_shards>;
  const reader existing(shards, valid, {1, 3});
  struct fault {
    order of;
    host_reader self;
    std::string expected;
  };
  for (const fault& each : {
           fault{valid, {0, 0}, "reader 0 is not one of 0 readers of a host"},
           fault{valid, {-1, 2}, "reader -1 is not one of 2 readers"},
           fault{valid, {2, 2}, "reader 2 is not one of 2 readers"},
           fault{valid, {1, 3}, "reader 1 of 3 of '" + files.folder() + "' exists already"},
           fault{order(106, 7), {0, 3}, "the order is of 106 samples, and there are 107"},
           fault{order(listed_shards{shards.sizes(), 3}, 7), {0, 3}, "is too small: 6 files are used at a time"},
           fault{order(107, 7), {0, 3}, "the order is of 1 shards, and there are 6"},
       }) {
    const std::string found = reader_error([&] { reader(shards, each.of, each.self); });
    CHECK_THAT(found, Catch::Contains(each.expected));
  }
  CHECK_THAT(reader_error([&] { remote_token_shards(cache, files.names, 0); }), Catch::Contains("at least one token"));
  reader::batch_type batch;
  CHECK_THAT(reader_error([&] { existing.append(107, batch); }), Catch::Contains("sample 107 is asked for"));
  CHECK(files.source.bytes_read().empty());
}

TEST_CASE("a damaged position of another reader is an error that names its file") {
  for (const char* text : {"", "{", "{}", R"({"format":"hocket reader"})", R"({"format":"hocket reader","turn":-1})"}) {
    token_storage files(6);
    file_cache cache(files.folder(), files.source, files.options(100ms));
    remote_token_shards shards(cache, files.names, sample_tokens);
    const order in_order = order_of(shards);
    const group_reader tested(shards, in_order, {0, 2}), other(shards, in_order, {1, 2});
    std::string path;
    for (const auto& each : std::filesystem::directory_iterator(files.folder())) {
      if (each.path().string().ends_with("-1-of-2")) path = each.path().string();
    }
    std::ofstream(path) << text;
    decltype(tested)::batch_type batch;
    CHECK_THAT(reader_error([&] { tested.append(0, batch); }), Catch::Contains("'" + path + "' is damaged: "));
  }
}

TEST_CASE("samples of remote tar files are valid as long as their batch") {
  storage files(0, 0);
  std::vector<std::string> expected;
  std::uint64_t bytes = 0;
  for (const char* name : {"a.tar", "b.tar", "c.tar", "d.tar"}) {
    std::string tar(512, '\0');
    tar_index index;
    for (int i = 0; i < 5; ++i) {
      expected.push_back(name + std::to_string(i));
      index.samples.push_back({std::to_string(i), {{"txt", tar.size(), expected.back().size()}}});
      tar += expected.back();
    }
    index.bytes = bytes = tar.size();
    files.names.push_back(name);
    files.write(name, tar);
    files.write(name + std::string(".index"), encode_tar_index(index));
  }
  file_cache cache(files.folder(), files.source, {.bytes = 2 * bytes, .timeout = 10s});
  remote_tar_shards shards(cache, files.names);
  const order in_order(listed_shards{shards.sizes(), 1}, 3);
  const group_reader samples(shards, in_order);
  loader batches(in_order, samples, share(0, 1), {.batch = 3, .prefetch = 2});
  std::vector<std::string> found;
  for (const auto& batch : batches.epoch()) {
    for (const tar_sample& each : batch.samples) {
      const auto text = each.find("txt");
      found.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
    }
  }
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
}

TEST_CASE("a process that has stopped while it has the folder locked does not delay the end of a loader") {
  token_storage files(6);
  files.source.delay = 20ms;  // so that not all is loaded when the folder is locked
  file_cache cache(files.folder(), files.source, files.options(60s));
  remote_token_shards shards(cache, files.names, sample_tokens);
  const order in_order = order_of(shards);
  hocket::platform::locked_file stopped;
  std::chrono::steady_clock::time_point begin;
  {
    const group_reader tested(shards, in_order);
    loader batches(in_order, tested, share(0, 1), {.batch = 16, .prefetch = 3, .threads = 3});
    batches.next();
    REQUIRE(stopped.open(files.folder() + "/lock", hocket::platform::access::create) == 0);
    while (stopped.try_lock(hocket::platform::lock_kind::exclusive) != 0) std::this_thread::yield();
    std::this_thread::sleep_for(300ms);  // until threads wait for the lock
    begin = std::chrono::steady_clock::now();
  }
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
}
