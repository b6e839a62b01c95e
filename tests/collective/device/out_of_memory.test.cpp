// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If host memory runs out anywhere within a call on device memory, all ranks learn of it, and nothing is left on a
// device.
#include "collective/device/devices.hpp"
#include "support/short_memory.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace hocket_test;
namespace cuda = hocket::cuda;
using hocket::with;

namespace {

/// A real driver does not call the program's operator new. The test double does, so its allocations always succeed.
class sparing_driver {
 public:
  explicit sparing_driver(host_driver& host) : host_(host) {}

#define HOCKET_TEST_CALL(name)          \
  template <class... Arguments>         \
  status name(Arguments... arguments) { \
    const plenty here;                  \
    return host_.name(arguments...);    \
  }
  HOCKET_TEST_CALL(get_error_name)
  HOCKET_TEST_CALL(get_error_string)
  HOCKET_TEST_CALL(ctx_get_current)
  HOCKET_TEST_CALL(ctx_set_current)
  HOCKET_TEST_CALL(event_create)
  HOCKET_TEST_CALL(event_destroy)
  HOCKET_TEST_CALL(event_query)
  HOCKET_TEST_CALL(event_record)
  HOCKET_TEST_CALL(mem_free_host)
  HOCKET_TEST_CALL(mem_host_alloc)
  HOCKET_TEST_CALL(memcpy_async)
  HOCKET_TEST_CALL(pointer_get_attribute)
  HOCKET_TEST_CALL(pointer_get_attributes)
  HOCKET_TEST_CALL(stream_create)
  HOCKET_TEST_CALL(stream_destroy)
  HOCKET_TEST_CALL(stream_get_ctx)
  HOCKET_TEST_CALL(stream_is_capturing)
  HOCKET_TEST_CALL(stream_query)
  HOCKET_TEST_CALL(stream_wait_event)
  HOCKET_TEST_CALL(thread_exchange_stream_capture_mode)
#undef HOCKET_TEST_CALL

 private:
  host_driver& host_;
};

constexpr cuda::staging kilobyte{1024};
constexpr std::size_t several_chunks = 4 * 256 - 3;

struct device_call {
  std::string name;
  std::function<void(thread_rank&, hocket::device_buffer<float, cuda::device_memory> in,
                     hocket::device_buffer<float, cuda::device_memory> out, cuda::stream_of<sparing_driver> order)>
      run;
};

std::vector<device_call> device_calls() {
  const auto next = [](thread_rank& me) { return hocket::peer{(me.rank() + 1) % me.size()}; };
  const auto previous = [](thread_rank& me) { return hocket::peer{(me.rank() + me.size() - 1) % me.size()}; };
  return {
      {"all_reduce", [](thread_rank& me, auto in, auto out,
                        auto order) { hocket::all_reduce(me.comm(), in, out, std::plus<>{}, with(order, kilobyte)); }},
      {"all_reduce_async",
       [](thread_rank& me, auto in, auto out, auto order) {
         hocket::all_reduce_async(me.comm(), in, out, std::plus<>{}, with(order, kilobyte)).wait();
       }},
      {"send_recv",
       [=](thread_rank& me, auto in, auto out, auto order) {
         hocket::send_recv(me.comm(), in, next(me), out, previous(me), hocket::tag{1}, with(order, kilobyte));
       }},
      {"send_recv_async",
       [=](thread_rank& me, auto in, auto out, auto order) {
         hocket::send_recv_async(me.comm(), in, next(me), out, previous(me), hocket::tag{1}, with(order, kilobyte))
             .wait();
       }},
  };
}

/// Returns whether rank 0 has reached allocation `number` in the call, which then fails on all ranks or on none.
bool run_short(const device_call& each, int ranks, long number, int& failures) {
  host_machine machine;
  std::vector<where_rank_runs> where;
  for (int rank = 0; rank < ranks; ++rank) where.push_back({rank, 0});
  processes all(machine, where);
  std::vector<std::optional<sparing_driver>> drivers(static_cast<std::size_t>(ranks));
  std::atomic<bool> was_short{false};
  std::atomic<int> failed{0};
  on_ranks(ranks, [&](thread_rank& me) {
    const auto r = static_cast<std::size_t>(me.rank());
    host_driver& driver = all.driver(r);
    sparing_driver& spared = drivers[r].emplace(driver);
    const rank_device mine(driver);
    placed_vector<float> in(driver, several_chunks, memory_space::device);
    placed_vector<float> out(driver, several_chunks, memory_space::device);
    const auto told = [&](const hocket::error& cause) {
      me.check(cause.code() == hocket::errc::out_of_memory, [&] { return std::string(cause.what()); });
    };
    bool ended = false;
    try {
      if (me.rank() == 0) planned = {number, false, false, 0};
      each.run(me, cuda::device(in.span()), cuda::device(out.span()), {&spared, mine.stream()});
    } catch (const hocket::error& cause) {
      ended = true;
      const plenty here;
      told(cause);
    }
    if (me.rank() == 0) was_short = std::exchange(planned, {}).has_begun;
    try {  // ranks whose part was complete learn of it here
      hocket::barrier(me.comm());
    } catch (const hocket::error& cause) {
      if (!ended) told(cause);
      ended = true;
    }
    if (ended) ++failed;
    driver.finish_streams();
  });
  CHECK((failed == 0 || failed == ranks));
  if (failed != 0) ++failures;
  check_clean(machine, all);
  for (std::size_t r = 0; r < all.size(); ++r) CHECK(all.driver(r).copies_of_freed == 0);
  return was_short;
}

}  // namespace

TEST_CASE("a call on device memory that runs out of memory fails on all ranks or on none, and nothing leaks") {
  for (const int ranks : {1, 3}) {
    for (const device_call& each : device_calls()) {
      int failures = 0;
      for (long number = 0;; ++number) {
        INFO(each.name << " on " << ranks << " ranks, allocation " << number);
        REQUIRE(number < 200);
        if (!run_short(each, ranks, number, failures)) break;
      }
      INFO(each.name);
      CHECK(failures > 3);
    }
  }
}
