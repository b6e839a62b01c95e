// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the tests of the UCX transport share: processes as ranks, each with a list of what it found wrong, which
/// the main process asserts to be empty.
#pragma once

#include <hocket/bootstrap/launch.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/ucx.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#include <unistd.h>
#endif

namespace ucx_test {

using namespace std::chrono_literals;
using hocket::ucx::communicator;
using world = hocket::bootstrap::world_description;

/// The transports by which ranks on one host reach each other.
struct route {
  const char* name;
  const char* transports;            ///< UCX_TLS; null: UCX's default
  bool windows;                      ///< whether peers' memory must be reachable
  const char* rendezvous = nullptr;  ///< UCX_RNDV_THRESH; null: hocket's default
  const char* kernel_copies = "1";   ///< HOCKET_KERNEL_COPIES
};
inline constexpr route shared_memory{"shared memory and copies by the kernel", nullptr, true};
inline constexpr route posix_memory{"shared memory", "posix,self", true, nullptr, "0"};
inline constexpr route network{"the network", "tcp,self", false};
/// As for network adapters that move whole messages without the CPU.
inline constexpr route whole_messages{"the network, by messages that UCX does not divide", "tcp,self", false, "20k"};

/// Counts and prints the failed checks of one rank.
class findings {
 public:
  explicit findings(std::string who) : who_(std::move(who)) {}

  void expect(bool fine, const std::string& what) {
    if (!fine && ++count_ <= 10) std::fprintf(stderr, "%s: %s\n", who_.c_str(), what.c_str());
  }
  template <class A, class B>
  void equal(const A& found, const B& expected, const std::string& what) {
    if (found == expected) return;
    std::string values;
    if constexpr (std::is_arithmetic_v<A>) {
      values = ": " + std::to_string(found) + " instead of " + std::to_string(expected);
    }
    expect(false, what + values);
  }
  /// Expects that `act` throws `hocket::error` with `condition`, and returns its cause.
  template <class Act>
  hocket::failure fails(hocket::errc condition, const std::string& what, Act act) {
    try {
      act();
    } catch (const hocket::error& cause) {
      expect(cause.code() == condition, what + " failed with an unexpected error: " + cause.what());
      return cause.cause();
    }
    expect(false, what + " did not fail");
    return {};
  }
  bool any() const noexcept { return count_ > 0; }

 private:
  const std::string who_;
  int count_ = 0;
};

/// Returns whether this rank has leaks, which are otherwise not checked because it ends by _exit. The check searches
/// threads in /proc, and is not possible if /proc belongs to another process namespace.
inline bool leaks() {
#if defined(__SANITIZE_ADDRESS__)
  char own[32] = {};
  const auto length = ::readlink("/proc/self", own, sizeof own - 1);
  if (length < 0 || own != std::to_string(::getpid())) return false;
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

inline void use(const route& way) {
  const auto say = [](const char* name, const char* value) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  };
  say("UCX_TLS", way.transports);
  say("UCX_RNDV_THRESH", way.rendezvous);
  say("HOCKET_KERNEL_COPIES", way.kernel_copies);
}

/// Runs `body(world, findings)` on each rank, without a connection. Returns the ranks' results.
template <class Body>
std::vector<hocket::launch::process_result> results_of(int ranks, const route& way, Body body,
                                                       std::chrono::nanoseconds timeout = 60s) {
  hocket::launch::process_options options;
  options.capture_output = true;
  options.timeout = timeout;
  return hocket::launch::run_processes(
      ranks,
      [&](world where) {
        findings found("rank " + std::to_string(where.rank) + " over " + way.name);
        use(way);
        where.timeout = 30s;
        try {
          body(where, found);
        } catch (const std::exception& cause) {
          found.expect(false, cause.what());
        }
        return found.any() ? 1 : leaks() ? 2 : 0;
      },
      options);
}

/// The same, but returns a description of the failures, empty if none.
template <class Body>
std::string run_worlds(int ranks, const route& way, Body body, std::chrono::nanoseconds timeout = 60s) {
  return hocket::launch::describe_failures(results_of(ranks, way, body, timeout));
}

/// Sums vectors of `count` elements, each the number of its rank plus 1, and checks the result.
inline void check_sum(const communicator& comm, std::size_t count, findings& found) {
  const std::vector<int> in(count, comm.rank() + 1);
  std::vector<int> out(count);
  hocket::all_reduce(comm, in, out);
  found.equal(out.back(), comm.size() * (comm.size() + 1) / 2, "sum of " + std::to_string(count));
}

/// Runs `body(communicator, findings)` on each rank.
template <class Body>
std::string run_ranks(int ranks, const route& way, Body body) {
  return run_worlds(ranks, way, [&](const world& where, findings& found) {
    auto comm = hocket::ucx::connect(where);
    body(comm, found);
  });
}

/// Connects all pairs of ranks. UCX 1.13 rarely ends the process by an assertion (see Known limits in
/// docs/when-it-fails.md) if a peer exits before UCX has answered its first message; these tests avoid that.
inline void meet_all(communicator& comm) {
  std::vector<int> in(static_cast<std::size_t>(comm.size())), out(in.size());
  for (int i = 0; i < 20; ++i) {
    hocket::all_to_all(comm, in, out, hocket::with(hocket::pairwise));
    hocket::barrier(comm);
    std::this_thread::sleep_for(1ms);
  }
}

/// Number of bytes that peers can read of a buffer; 0: all.
inline std::size_t staging_limit(const communicator& comm) {
  return hocket::detail::communicator_access::state(comm).staging_limit();
}
inline bool has_windows(const communicator& comm) {
  return hocket::detail::communicator_access::state(comm).has_windows();
}

/// Element `i` of rank `rank`. Sums differ for each set of ranks and each index.
constexpr std::uint64_t element(int rank, std::size_t i) noexcept {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15U + i;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  return x ^ (x >> 27);
}

inline std::vector<std::uint64_t> vector_of(int rank, std::size_t size) {
  std::vector<std::uint64_t> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = element(rank, i);
  return result;
}

inline std::vector<std::uint64_t> sum_of(int ranks, std::size_t size) {
  std::vector<std::uint64_t> result(size);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < size; ++i) result[i] += element(rank, i);
  }
  return result;
}

}  // namespace ucx_test
