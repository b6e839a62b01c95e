// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads as ranks if the system can't start all of them.
// unsanitized: sanitizers need more addresses than this leaves
#include "support/catch.hpp"

#include <hocket/group/local.hpp>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <string>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

/// Leaves room in the address space of this program for the stacks of three threads.
class room_for_three_threads {
 public:
  room_for_three_threads() {
    constexpr std::size_t stack = std::size_t{1} << 30;
    REQUIRE(pthread_getattr_default_np(&attributes_) == 0);
    REQUIRE(getrlimit(RLIMIT_AS, &limit_) == 0);
    pthread_attr_t large = attributes_;
    REQUIRE(pthread_attr_setstacksize(&large, stack) == 0);
    REQUIRE(pthread_setattr_default_np(&large) == 0);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit tight = limit_;
    tight.rlim_cur = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + 3 * stack + stack * 3 / 4;
    REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  }
  room_for_three_threads(const room_for_three_threads&) = delete;
  room_for_three_threads& operator=(const room_for_three_threads&) = delete;
  ~room_for_three_threads() {
    setrlimit(RLIMIT_AS, &limit_);
    pthread_setattr_default_np(&attributes_);
  }

 private:
  pthread_attr_t attributes_{};
  rlimit limit_{};
};

}  // namespace

TEST_CASE("a thread that can't be started is an error that gives its number, and the started threads end") {
  std::atomic<int> begun{0};
  hocket::failure found;
  {
    const room_for_three_threads room;
    try {
      hocket::local::run(8, [&](const auto&) { begun.fetch_add(1); });
    } catch (const hocket::error& thrown) {
      found = thrown.cause();
    }
  }
  INFO(found.message());
  CHECK(found.code == hocket::errc::system);
  CHECK(found.reason.find("can't start thread 4 of 8 for the ranks of local::run: ") != std::string::npos);
  CHECK(begun.load() == 0);
}
#endif
