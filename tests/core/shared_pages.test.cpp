// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory that another process opens by a ticket.
#include "support/catch.hpp"

#include <hocket/core/platform/shared_pages.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace hocket;
using platform::mapping;
using platform::open_shared_pages;
using platform::shared_pages;

namespace {

shared_pages pages_of(std::size_t bytes) {
  failure fail;
  shared_pages made(bytes, fail);
  REQUIRE(!fail);
  return made;
}

/// Exit code of a child process that runs `body`.
template <class Body>
int exit_code_of(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("another process sees the same memory, which is zeroed at first") {
  for (const std::size_t bytes : {1U, 4096U, 100'001U}) {
    const shared_pages own = pages_of(bytes);
    CHECK(own.size() == bytes);
    CHECK(std::count(own.data(), own.data() + bytes, std::byte{0}) == static_cast<std::ptrdiff_t>(bytes));
    const auto ticket = own.ticket();
    own.data()[bytes - 1] = std::byte{7};
    CHECK(exit_code_of([&] {
            const mapping theirs = open_shared_pages(ticket);
            if (theirs.data() == nullptr || theirs.size() != bytes || theirs.data()[bytes - 1] != std::byte{7})
              return 1;
            theirs.data()[0] = std::byte{9};
            return 0;
          }) == 0);
    CHECK(own.data()[0] == std::byte{9});
  }
}

TEST_CASE("a mapping stays valid when the owner hides and frees the memory") {
  shared_pages own = pages_of(5000);
  const auto ticket = own.ticket();
  own.data()[4999] = std::byte{3};
  const mapping kept = open_shared_pages(ticket);
  own.hide();
  CHECK(open_shared_pages(ticket).data() == nullptr);
  own = shared_pages();
  REQUIRE(kept.data() != nullptr);
  CHECK(kept.data()[4999] == std::byte{3});
}

TEST_CASE("no process can shrink memory that others have mapped") {
  const shared_pages own = pages_of(5000);
  std::int32_t descriptor = -1;  // the second number of a ticket
  std::memcpy(&descriptor, own.ticket().data() + sizeof descriptor, sizeof descriptor);
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  const platform::file_descriptor other(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(other);
  CHECK(::ftruncate(other.get(), 4999) == -1);
  CHECK(errno == EPERM);
  own.data()[4999] = std::byte{1};
}

TEST_CASE("an invalid ticket opens no memory") {
  const shared_pages own = pages_of(5000);
  const auto ticket = own.ticket();
  CHECK(open_shared_pages({}).data() == nullptr);
  for (std::size_t i = 0; i < ticket.size(); ++i) {
    auto other = ticket;
    other[i] ^= std::byte{1};
    INFO("byte " << i);
    CHECK(open_shared_pages(other).data() == nullptr);
  }
}

TEST_CASE("memory beyond the limit of the size of files is refused, and does not end the process") {
  CHECK(exit_code_of([] {
          const rlimit limit{8192, 8192};
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
          failure fits, fails, fails_not;
          const shared_pages small(8192, fits), large(8193, fails);
          if (fits || small.lacks_file()) return 2;
          if (fails.code != errc::out_of_memory || !large.lacks_file() || large.data() != nullptr) return 3;
          if (fails.reason.find("the limit of the size of files is 8192 bytes") == std::string::npos) return 4;
          const shared_pages unshared = shared_pages::unshared(8193, fails_not);
          if (fails_not || unshared.size() != 8193 || !unshared.ticket().empty()) return 5;
          unshared.data()[8192] = std::byte{1};
          return 0;
        }) == 0);
}

TEST_CASE("a request for more memory than the machine has is refused") {
  failure fail;
  const shared_pages none(std::size_t{1} << 46, fail);
  CHECK(fail.code == errc::out_of_memory);
  CHECK(none.data() == nullptr);
  CHECK(!none.lacks_file());
  failure unshared;
  CHECK(shared_pages::unshared(std::size_t{1} << 46, unshared).data() == nullptr);
  CHECK(unshared.code == errc::out_of_memory);
}
