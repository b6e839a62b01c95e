// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Helpers of the start-up tests: threads that act as ranks, a raw client, and counts of resources that must not leak.
#pragma once

#include <hocket/bootstrap/tcp_store.hpp>
#include <hocket/core/platform/directory.hpp>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <functional>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>

namespace bootstrap_test {

using namespace std::chrono_literals;
namespace bootstrap = hocket::bootstrap;
namespace platform = hocket::platform;

/// Result of one rank. Written by its thread, read by the main thread.
struct outcome {
  hocket::failure cause;
  std::vector<bootstrap::blob> all;
  std::chrono::duration<double> seconds{};
};

inline hocket::deadline within(std::chrono::nanoseconds duration) { return hocket::deadline::after(duration); }

/// Runs `body(rank, outcome)` in a thread for each of `ranks`.
inline std::vector<outcome> as_ranks(const std::vector<int>& ranks, const std::function<void(int, outcome&)>& body) {
  std::vector<outcome> outcomes(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto begin = std::chrono::steady_clock::now();
      try {
        body(ranks[i], outcomes[i]);
      } catch (const hocket::error& cause) {
        outcomes[i].cause = cause.cause();
      }
      outcomes[i].seconds = std::chrono::steady_clock::now() - begin;
    });
  }
  for (std::thread& each : threads) each.join();
  return outcomes;
}

inline std::vector<int> first_ranks(int count) {
  std::vector<int> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
  return ranks;
}

/// A blob that only `rank` sends, with a size that differs from that of other ranks; empty for rank 1.
inline bootstrap::blob blob_of(int rank) {
  bootstrap::blob result(static_cast<std::size_t>(rank == 1 ? 0 : 17 * rank + 3));
  const auto first = static_cast<unsigned>(rank);
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::byte>(i * 7 + first);
  return result;
}

inline std::vector<bootstrap::blob> blobs_of(int ranks) {
  std::vector<bootstrap::blob> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(blob_of(rank));
  return all;
}

/// A socket that listens at its own port, and options for ranks that connect to it.
class tcp_place {
 public:
  explicit tcp_place(int ranks, std::string token = "secret") : ranks_(ranks), token_(std::move(token)) {
    hocket::failure cause;
    if (platform::listen_on("127.0.0.1", 0, listener_, cause) != 0) hocket::raise(cause);
    port_ = platform::local_address(listener_.get()).port();
  }

  bootstrap::tcp_store_options options(int rank) const {
    return {rank, ranks_, "127.0.0.1", port_, token_, rank == 0 ? listener_.get() : -1};
  }
  std::uint16_t port() const { return port_; }
  /// Closes the listener. No process listens at the port then, until rank 0 does.
  void close() { listener_.reset(); }

 private:
  int ranks_;
  std::string token_;
  platform::file_descriptor listener_;
  std::uint16_t port_ = 0;
};

/// A client that sends arbitrary bytes to a store.
class raw_client {
 public:
  explicit raw_client(std::uint16_t port) {
    if (auto cause = platform::connect_to("127.0.0.1", port, within(5s), socket_)) hocket::raise(cause);
  }
  void send(bootstrap::byte_view bytes) { static_cast<void>(platform::send_all(socket_.get(), bytes, within(5s))); }
  /// Reads until the server closes; appends "still open" if it does not within `patience`.
  std::string read_to_end(std::chrono::nanoseconds patience = 3s) {
    std::string text;
    for (;;) {
      std::byte one{};
      const auto cause = platform::receive_all(socket_.get(), std::span(&one, 1), within(patience));
      if (cause.code == hocket::errc::timeout) return text + "still open";
      if (cause) return text;
      text += static_cast<char>(one);
    }
  }
  std::string read(std::size_t size) {
    bootstrap::blob bytes(size);
    const auto cause = platform::receive_all(socket_.get(), bytes, within(3s));
    return cause ? cause.reason : bootstrap::blob_text(bytes);
  }
  void close() { socket_.reset(); }

 private:
  platform::file_descriptor socket_;
};

/// Returns the number of this process's threads without those that are ending: the kernel lists a thread for a little
/// while after it was joined.
inline std::size_t count_threads() {
  constexpr unsigned long exiting = 4;  // PF_EXITING
  std::size_t count = 0;
  for (const std::string& id : platform::list_directory("/proc/self/task")) {
    std::ifstream file("/proc/self/task/" + id + "/stat");
    std::string text;
    if (!std::getline(file, text)) continue;
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 6; ++i) fields >> skipped;  // state, parent, group, session, terminal and its group
    unsigned long flags = 0;
    if (fields >> flags && (flags & exiting) == 0) ++count;
  }
  return count;
}

/// Open descriptors and threads of this process, and whether it has children that were not waited for.
struct process_resources {
  std::size_t descriptors = platform::list_directory("/proc/self/fd").size();
  std::size_t threads = count_threads();
  bool children = ::waitpid(-1, nullptr, WNOHANG) >= 0;
  bool operator==(const process_resources&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const process_resources& each) {
    return out << each.descriptors << " descriptors, " << each.threads << " threads"
               << (each.children ? ", children" : "");
  }
};

/// A new directory that is removed with its contents.
class scratch_directory {
 public:
  scratch_directory() : path_("/tmp/hocket-test-" + platform::random_name()) { ::mkdir(path_.c_str(), 0700); }
  ~scratch_directory() { remove(path_); }
  const std::string& path() const { return path_; }
  std::size_t entries() const { return platform::list_directory(path_).size(); }

 private:
  static void remove(const std::string& path) {
    for (const std::string& name : platform::list_directory(path)) {
      const std::string each = path + '/' + name;
      if (::unlink(each.c_str()) != 0) remove(each);
    }
    ::rmdir(path.c_str());
  }
  std::string path_;
};

}  // namespace bootstrap_test
