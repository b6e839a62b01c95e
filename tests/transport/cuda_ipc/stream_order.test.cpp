// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What streams can do is tried: a promise that is not kept, and a wait that does not end, are found out.
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

TEST_CASE("who talks to the driver is kept from nothing by captures elsewhere, and leaves the thread as it was") {
  alone one;
  {
    const ipc::context_scope scope(one.driver(), one.all.place(0).where);
    CHECK(scope.said() == status::success);
    CHECK(one.driver().mode() == ipc::capture_mode::relaxed);
  }
  CHECK(one.driver().mode() == ipc::capture_mode::of_all);
}

TEST_CASE("streams that keep words in order are found to do so, and nothing is left") {
  alone one;
  const ipc::stream_order found = one.asked();
  CHECK(found.words);
  CHECK(found.flushes);
  CHECK(found.why_not.empty());
  hocket_test::check_clean(one.machine, one.all);
}

TEST_CASE("a device that has no flush, and needs none, orders words") {
  alone one;
  one.driver().lack(ipc::device_attribute::flush_remote_writes);
  const ipc::stream_order found = one.asked();
  CHECK(found.words);
  CHECK_FALSE(found.flushes);
  hocket_test::check_clean(one.machine, one.all);
}

TEST_CASE("words that are not written end in a reason and not in a hang") {
  alone one;
  one.driver().lose_words();
  const ipc::stream_order found = one.asked(std::chrono::milliseconds(20));
  CHECK_FALSE(found.words);
  CHECK(found.why_not.find("did not end") != std::string::npos);
  CHECK(one.machine.allocated() == 1);  // the stream may still look at it
}

TEST_CASE("streams that write another word than they should do not order words") {
  alone one;
  one.driver().spoil_words();
  const ipc::stream_order found = one.asked();
  CHECK_FALSE(found.words);
  CHECK(found.why_not.find("a wrong word") != std::string::npos);
  hocket_test::check_clean(one.machine, one.all);
}

TEST_CASE("whichever call fails with whichever code: less is there, and nothing is left") {
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
      CHECK((!found.words || found.flushes));  // waits that should flush and don't would order nothing
      hocket_test::check_clean(one.machine, one.all);
      if (!one.driver().has_failed()) {
        CHECK(all);
        CHECK(call > 10);
        break;
      }
    }
  }
}
