// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A cache of files that an HTTP server has: two ranks read shards through it, and a downloader is killed.
// needs: curl
#include "data/cache/local_source.hpp"
#include "data/cache/processes.hpp"
#include "data/remote/http_server.hpp"
#include "data/remote/remote_reads.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/data/cache/group_reader.hpp>
#include <hocket/data/cache/remote_shards.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/remote/curl.hpp>
#include <hocket/data/share.hpp>

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hocket::data;

constexpr std::size_t shards = 9, shard_bytes = 40'000, piece = 5000, sample_tokens = 100;

/// A text that the parent process writes after it has started children.
class shared_text {
 public:
  shared_text()
      : text_(static_cast<char*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    REQUIRE(static_cast<void*>(text_) != MAP_FAILED);
  }
  shared_text(const shared_text&) = delete;
  shared_text& operator=(const shared_text&) = delete;
  ~shared_text() { ::munmap(text_, 4096); }

  void set(const std::string& text) { text.copy(text_, 4095); }
  std::string get() const { return text_; }

 private:
  char* text_;
};

/// Serves one file of one byte, the number of the connection that is asked, until the process is killed.
std::string serve_numbers(shared_text& url) {
  std::mutex mutex;
  std::map<const http_test::connection*, char> numbers;
  const http_test::server server([&](const http_test::request& asked, const http_test::connection& to) {
    const std::scoped_lock lock(mutex);
    const char number = numbers.emplace(&to, static_cast<char>('0' + numbers.size())).first->second;
    return http_test::serve_range({std::string(1, number)}, asked, to);
  });
  url.set(server.url());
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// A server that has the shards, and counts the bytes that it has sent of each, without those of `describe`.
class shard_server {
 public:
  explicit shard_server(std::chrono::microseconds delay)
      : server_([this, delay](const http_test::request& asked, const http_test::connection& to) {
          std::this_thread::sleep_for(delay);
          if (asked.last > 0) {
            const std::scoped_lock lock(mutex_);
            sent_[asked.path] += asked.last - asked.first + 1;
          }
          return http_test::serve_range({cache_test::content(asked.path, shard_bytes)}, asked, to);
        }) {}

  std::string url() const { return server_.url(""); }
  std::uint64_t sent(const std::string& path) const {
    const std::scoped_lock lock(mutex_);
    const auto found = sent_.find(path);
    return found == sent_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> sent_;
  http_test::server server_;
};

std::string path_of(std::size_t shard) { return "/tokens-" + std::to_string(shard); }

std::vector<std::string> urls(const std::string& server) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < shards; ++i) result.push_back(server + path_of(i));
  return result;
}

/// Loads one epoch as one of two ranks, with room for a third of the shards. Returns what is wrong.
std::string load(const std::string& server, const std::string& folder, int rank) {
  http_source web(http_test::quick_options());
  file_cache cache(folder, web, {.bytes = shards / 3 * shard_bytes, .piece_bytes = piece});
  remote_token_shards files(cache, urls(server), sample_tokens);
  const order in_order(listed_shards{files.sizes(), 1}, 3);
  const group_reader samples(files, in_order, {rank, 2});
  loader batches(in_order, samples, share(rank, 2), {.batch = 20, .prefetch = 1});
  const epoch_order expected = in_order.epoch(0);
  const std::uint64_t per_shard = files.sizes().front();
  for (const auto& batch : batches.epoch()) {
    for (std::uint64_t i = 0; i < batch.own.size(); ++i) {
      const std::uint64_t number = expected[batch.own.begin + i];
      const std::string bytes = cache_test::content(path_of(number / per_shard), shard_bytes);
      const std::size_t at = number % per_shard * sample_tokens * 2;
      const std::size_t first = i * (sample_tokens + 1);
      for (std::size_t token = 0; token <= sample_tokens; ++token) {
        const auto low = static_cast<unsigned char>(bytes[at + 2 * token]);
        const auto high = static_cast<unsigned char>(bytes[at + 2 * token + 1]);
        if (batch.samples[first + token] != low + 256U * high) return "sample " + std::to_string(number) + " is wrong";
      }
    }
  }
  return "";
}

}  // namespace

TEST_CASE("two ranks download each shard of an HTTP server once, with room for a third of them") {
  const hocket_test::scratch_directory scratch;
  shared_text server_url;
  cache_test::processes ranks(2, [&](int rank) { return load(server_url.get(), scratch.path() + "/cache", rank); });
  const shard_server server(std::chrono::microseconds(50));  // after the children, because it has threads
  server_url.set(server.url());
  CHECK(ranks.end() == "");
  // The loaders have begun the next epoch, in which three shards at most were downloaded.
  std::uint64_t twice = 0;
  for (std::size_t i = 0; i < shards; ++i) {
    INFO(path_of(i));
    CHECK(server.sent(path_of(i)) >= shard_bytes);
    CHECK(server.sent(path_of(i)) <= 2 * shard_bytes);
    twice += server.sent(path_of(i)) > shard_bytes ? 1U : 0U;
  }
  CHECK(twice <= 3);
}

TEST_CASE("a download from an HTTP server goes on after its process was killed") {
  std::uint64_t requested_again = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    const hocket_test::scratch_directory scratch;
    shared_text server_url;
    cache_test::processes ranks(2, [&](int) -> std::string {
      http_source web(http_test::quick_options());
      file_cache cache(scratch.path() + "/cache", web, {.bytes = shards * shard_bytes, .piece_bytes = piece});
      for (std::size_t i = 0; i < 3; ++i) {
        const opened_file file = cache.open(server_url.get() + path_of(i));
        if (cache_test::text_of(file) != cache_test::content(path_of(i), shard_bytes)) return path_of(i) + " is wrong";
      }
      return "";
    });
    const shard_server server(std::chrono::microseconds(500));
    server_url.set(server.url());
    ranks.begin();
    std::mt19937 random(seed);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ranks.kill(0);
    CHECK(ranks.end() == "");
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(server.sent(path_of(i)) >= shard_bytes);
      requested_again += server.sent(path_of(i)) - shard_bytes;
    }
  }
  CHECK(requested_again <= 10 * piece);  // the piece that was on its way
}

TEST_CASE("a copy of a process does not use the connections of its parent") {
  shared_text url;
  cache_test::processes server(1, [&](int) { return serve_numbers(url); });
  server.begin();
  while (url.get().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  http_source web(http_test::quick_options());
  const auto number = [&] {
    const http_test::read_result got = http_test::read_bytes(web, {url.get(), 1, "\"one\"", {}}, 0, 1);
    return got.cause ? got.cause.reason : got.bytes;
  };
  CHECK(number() == "0");
  cache_test::processes copies(2, [&](int) {
    const std::string first = number(), second = number();
    if (first == second && (first == "1" || first == "2")) return std::string();
    return "connections " + first + " and " + second;
  });
  CHECK(copies.end() == "");
  CHECK(number() == "0");
}
