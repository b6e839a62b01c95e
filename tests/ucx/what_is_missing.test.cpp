// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks of one host that share no memory, and lack what UCX needs instead: each rank gets an error that names it.
#include "support/catch.hpp"
#include "support/namespaces.hpp"
#include "support/scratch.hpp"
#include "ucx/ranks.hpp"

#include <chrono>
#include <cstdio>
#include <string>

#include <sched.h>
#include <sys/mount.h>

namespace {

using namespace ucx_test;

constexpr route any_route{"what start-up finds", nullptr, true, nullptr, nullptr};

/// What is missing on a host, and what the error of every rank must state.
struct lack {
  const char* name;
  bool (*prepare)();
  const char* stated;
};

constexpr lack lacks[] = {
    {"no /proc",
     [] {
       return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
     },
     "/proc is not mounted"},
    {"no loopback interface", [] { return ::unshare(CLONE_NEWNET) == 0; }, "ip link set lo up"},
};

/// Runs as the only process of a host that lacks something; its ranks are processes below it.
int connect_on(const lack& host, const std::string& store) {
  if (!host.prepare()) return hocket_test::lacks_rights;
  const auto results = hocket::launch::run_processes(
      3,
      [&](const world& where) {
        use(any_route);
        if (::unshare(CLONE_NEWIPC) != 0) return hocket_test::lacks_rights;
        const auto begin = std::chrono::steady_clock::now();
        findings found("rank " + std::to_string(where.rank) + " with " + host.name);
        try {
          hocket::ucx::connect(where, {.timeout = 20s});
          found.expect(false, "connect has succeeded");
        } catch (const hocket::error& cause) {
          const std::string text = cause.what();
          found.expect(text.find(host.stated) != text.npos, "the error does not say what is missing: " + text);
        }
        found.expect(std::chrono::steady_clock::now() - begin < 5s, "connect took more than 5 s");
        return found.any() ? 1 : 0;
      },
      {.capture_output = true, .timeout = 40s, .directory = store});
  if (results[0].exit_code == hocket_test::lacks_rights) return hocket_test::lacks_rights;
  std::printf("%s", hocket::launch::describe_failures(results).c_str());
  return hocket::launch::describe_failures(results).empty() ? 0 : 1;
}

}  // namespace

TEST_CASE("ranks that can connect by no way say what the host lacks") {
  for (const lack& each : lacks) {
    INFO(each.name);
    const hocket_test::scratch_directory store;
    const auto results = hocket::launch::run_processes(1, [&](const world&) { return connect_on(each, store.path()); },
                                                       {.capture_output = true, .timeout = 60s, .directory = {}});
    if (results[0].exit_code == hocket_test::lacks_rights) {
      hocket_test::skip_without_rights(each.name);
    } else {
      CHECK(describe_failures(results) == "");
    }
  }
}
