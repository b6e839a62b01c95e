// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/resolve.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/platform/wait_ready.hpp>

#include <chrono>
#include <stop_token>
#include <string>

#include "support/catch.hpp"

namespace platform = hocket::platform;
using namespace std::chrono_literals;
using hocket::deadline;
using hocket::errc;
using hocket::wait_limit;

TEST_CASE("a limit obeys its stop token, and waits in long slices if the token can't be triggered") {
  std::stop_source source;
  const std::stop_token token = source.get_token();
  const wait_limit limit(deadline(), token);
  CHECK_FALSE(limit.aborted());
  CHECK(limit.slice() == wait_limit::longest_slice);
  CHECK(limit.at_most(1ms).slice() <= 1ms);
  const std::stop_token nobodys;
  CHECK(wait_limit(deadline(), nobodys).slice() == 1h);
  source.request_stop();
  CHECK(limit.aborted());
  CHECK(limit.later_by(1s).aborted());
  CHECK(limit.at_most(1s).aborted());
  CHECK(platform::nap(1h, limit).code == errc::aborted);
  const platform::pipe_ends silent = platform::make_pipe();
  CHECK(platform::wait_ready(silent.read.get(), POLLIN, limit).code == errc::aborted);
  CHECK(platform::wait_ready(silent.read.get(), POLLIN, deadline::after(1ms)).code == errc::timeout);
}

TEST_CASE("numeric addresses and names are resolved, and an unknown name is reported") {
  platform::address_list found;
  const deadline soon = deadline::after(20s);
  for (const char* host : {"127.0.0.1", "::1", "localhost", ""}) {
    INFO(host);
    CHECK_FALSE(platform::resolve(host, 80, soon, found));
    CHECK(found != nullptr);
  }
  const hocket::failure cause = platform::resolve("no such name", 80, soon, found);
  CHECK(cause.code == errc::unreachable);
  CHECK(cause.reason.find("'no such name'") != std::string::npos);
}

TEST_CASE("an aborted limit ends the lookup of a name, and not of a numeric address") {
  std::stop_source source;
  source.request_stop();
  const std::stop_token token = source.get_token();
  platform::address_list found;
  CHECK(platform::resolve("localhost", 80, wait_limit(deadline(), token), found).code == errc::aborted);
  CHECK_FALSE(platform::resolve("127.0.0.1", 80, wait_limit(deadline(), token), found));
}
