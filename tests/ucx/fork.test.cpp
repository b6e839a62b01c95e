// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Copies of ranks made by `fork`: their calls are refused, and the rank keeps the objects that they destroy.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/group/shrink.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucx_test;
using hocket::errc;

/// Ends a copy like a program that does not use communicators.
[[noreturn]] void end(int status) {
#if defined(__SANITIZE_ADDRESS__)
  ::_exit(status);  // the objects that a copy must not destroy would be leaks
#else
  std::exit(status);
#endif
}

/// Returns whether `act` returns true in a copy of this process.
template <class Act>
bool holds_in_a_copy(Act act) {
  const pid_t copy = ::fork();
  if (copy == 0) end(act() ? 0 : 1);
  int status = 0;
  return ::waitpid(copy, &status, 0) == copy && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool is_refused(const hocket::failure& cause) {
  return cause.reason.find("this process is a forked copy of the rank") != std::string::npos;
}

}  // namespace

TEST_CASE("calls of a forked copy are refused, and the rank keeps the objects that the copy destroys") {
  for (const route& by : {shared_memory, network}) {
    INFO(by.name);
    CHECK(run_worlds(3, by, [](const world& where, findings& found) {
            std::optional comm(hocket::ucx::connect(where));
            std::optional part(hocket::split(*comm, hocket::color{0}));
            std::optional memory(hocket::allocate<int>(*comm, 1000));
            check_sum(*comm, 1, found);
            check_sum(*comm, 100'000, found);
            const bool fine = holds_in_a_copy([&] {
              std::vector<int> data(100'000);
              bool refused = true;
              for (const std::size_t count : {std::size_t{1}, data.size()}) {
                const auto some = std::span(data).first(count);
                const auto why = found.fails(errc::invalid_argument, "a copy's all_reduce",
                                             [&] { hocket::all_reduce(*comm, hocket::in_place(some)); });
                refused = refused && is_refused(why);
              }
              const auto why = found.fails(errc::invalid_argument, "a copy's send",
                                           [&] { hocket::send(*part, data, hocket::peer{(where.rank + 1) % 3}); });
              found.fails(errc::invalid_argument, "a copy's split", [&] { hocket::split(*comm, hocket::color{0}); });
              found.fails(errc::invalid_argument, "a copy's shrink", [&] { hocket::shrink(*comm); });
              memory.reset();
              part.reset();
              comm.reset();
              return refused && is_refused(why) && !found.any();
            });
            found.expect(fine, "the copy was not refused");
            check_sum(*comm, 1, found);
            check_sum(*part, 100'000, found);
            std::fill(memory->begin(), memory->end(), 1);
            hocket::all_reduce(*comm, hocket::in_place(*memory));
            found.equal(*memory->begin(), 3, "sum in shared memory");
            check_sum(*comm, 100'000, found);
          }) == "");
  }
}

TEST_CASE("a request in flight completes on the rank, although its copy waits for it and destroys it") {
  for (const route& by : {shared_memory, network}) {
    INFO(by.name);
    CHECK(run_worlds(2, by, [](const world& where, findings& found) {
            auto comm = hocket::ucx::connect(where);
            const std::vector<int> out(300'000, where.rank);
            std::vector<int> in(out.size(), -1);
            const hocket::peer other{1 - where.rank};
            std::optional received(hocket::recv_async(comm, in, other));
            std::optional sent(hocket::send_async(comm, out, other));
            const bool fine = holds_in_a_copy([&] {
              const auto why = found.fails(errc::invalid_argument, "a copy's wait", [&] { received->wait(); });
              received.reset();
              sent.reset();
              return is_refused(why) && !found.any();
            });
            found.expect(fine, "the copy was not refused");
            sent->wait();
            received->wait();
            found.equal(in.back(), other.rank, "received");
          }) == "");
  }
}
