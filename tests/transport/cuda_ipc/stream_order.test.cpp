// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams are tested for ordered words: a driver that does not order them, or whose wait does not end, is detected.
#include "support/catch.hpp"
#include "transport/cuda_ipc/processes.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/stream_order.hpp>

#include <chrono>
#include <string>

namespace ipc = hocket::cuda_ipc;
using hocket_test::host_driver;
using hocket_test::host_machine;
using hocket_test::processes;
using ipc::status;

namespace {

/// One rank.
struct alone {
  host_machine machine;
  processes all{machine, {{1, 0}}};

  host_driver& driver() { return all.driver(0); }
  ipc::stream_order asked(std::chrono::nanoseconds limit = std::chrono::seconds(20)) {
    return ipc::stream_order_of(all.place(0), 0, hocket::deadline::after(limit));
  }
};

}  // namespace

TEST_CASE("a context scope uses the relaxed capture mode, and restores the previous one") {
  alone one;
  {
    const ipc::context_scope scope(one.driver(), one.all.place(0).where);
    CHECK(scope.entered() == status::success);
    CHECK(one.driver().mode() == ipc::capture_mode::relaxed);
  }
  CHECK(one.driver().mode() == ipc::capture_mode::of_all);
}

TEST_CASE("streams that order words are detected, and all resources are released") {
  alone one;
  const ipc::stream_order found = one.asked();
  CHECK(found.words);
  CHECK(found.flushes);
  CHECK(found.why_not.empty());
  hocket_test::check_clean(one.machine, one.all);
}

TEST_CASE("a device without flush orders words") {
  alone one;
  one.driver().lack(ipc::device_attribute::flush_remote_writes);
  const ipc::stream_order found = one.asked();
  CHECK(found.words);
  CHECK_FALSE(found.flushes);
  hocket_test::check_clean(one.machine, one.all);
}

TEST_CASE("lost words lead to a reason within the time limit") {
  alone one;
  one.driver().lose_words();
  const ipc::stream_order found = one.asked(std::chrono::milliseconds(20));
  CHECK_FALSE(found.words);
  CHECK(found.why_not.find("did not end") != std::string::npos);
  CHECK(one.machine.allocated() == 1);  // the stream may still read it
}

TEST_CASE("streams that write wrong words are reported as not ordering words") {
  alone one;
  one.driver().spoil_words();
  const ipc::stream_order found = one.asked();
  CHECK_FALSE(found.words);
  CHECK(found.why_not.find("a wrong word") != std::string::npos);
  hocket_test::check_clean(one.machine, one.all);
}

TEST_CASE("if any call fails with any code, fewer features are reported, and all resources are released") {
  for (const status code : hocket_test::every_code()) {
    for (int call = 0;; ++call) {
      alone one;
      one.driver().inject(call, code);
      const ipc::stream_order found = one.asked();
      INFO("call " << call << ", " << one.driver().failed_call() << ", code " << static_cast<int>(code));
      CHECK(found.words == found.why_not.empty());
      const bool all = found.words && found.flushes;
      const bool lost = one.driver().has_failed() && !hocket_test::may_fail_silently(one.driver(), code);
      CHECK((!all || !lost));
      CHECK((!found.words || found.flushes));  // waits without a required flush would not order words
      hocket_test::check_clean(one.machine, one.all);
      if (!one.driver().has_failed()) {
        CHECK(all);
        CHECK(call > 10);
        break;
      }
    }
  }
}
