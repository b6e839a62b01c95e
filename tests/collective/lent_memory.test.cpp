// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads read each other's buffers in place. A rank whose call has failed may free its buffers, so a peer's request
// that is only checked later must not read them. The memory is unmapped here, so that reading it ends the program.
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/send.hpp>

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <thread>

using namespace hocket_test;
using namespace std::chrono_literals;
using hocket::errc;

namespace {

/// Numbers whose memory is unmapped by the destructor.
class mapped_numbers {
 public:
  explicit mapped_numbers(std::size_t count)
      : bytes_(count * sizeof(float)),
        at_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  mapped_numbers(const mapped_numbers&) = delete;
  mapped_numbers& operator=(const mapped_numbers&) = delete;
  ~mapped_numbers() { munmap(at_, bytes_); }

  std::span<float> span() const { return {static_cast<float*>(at_), bytes_ / sizeof(float)}; }

 private:
  std::size_t bytes_;
  void* at_;
};

constexpr std::size_t lent_numbers = std::size_t{1} << 18;

/// Rank 1 starts `start(comm, in, out)`; rank 0 fails in `fail(comm, in, out)` and unmaps its memory; then rank 1 calls
/// `wait` or `test`.
template <class Start, class Fail>
void check_late(Start start, Fail fail) {
  for (const bool waits : {true, false}) {
    std::atomic<int> stage{0};
    on_ranks(2, [&](thread_rank& me) {
      const auto reach = [&](int wanted) {
        while (stage.load() < wanted) std::this_thread::sleep_for(1ms);
      };
      if (me.rank() == 0) {
        reach(1);
        {
          const mapped_numbers in(lent_numbers), out(lent_numbers);
          me.expect(errc::timeout, [&] { fail(me.comm(), in.span(), out.span()); });
        }
        stage = 2;
        return;
      }
      const mapped_numbers in(lent_numbers), out(lent_numbers);
      hocket::request started = start(me.comm(), in.span(), out.span());
      stage = 1;
      reach(2);
      me.expect(errc::timeout, [&] {
        while (!waits && !started.test()) {}
        started.wait();
      });
    });
  }
}

constexpr auto for_a_moment = hocket::with(hocket::timeout(200ms));

}  // namespace

TEST_CASE("a request that is checked late does not read a message that a failed sender has freed") {
  check_late([](const auto& comm, std::span<float> in, auto) { return hocket::recv_async(comm, in, hocket::peer{0}); },
             [](const auto& comm, std::span<float> in, auto) {
               hocket::send(comm, in, hocket::peer{1}, hocket::tag{0}, for_a_moment);
             });
}

TEST_CASE("a request that is checked late does not read vectors that a failed rank has freed") {
  check_late(
      [](const auto& comm, std::span<float> in, std::span<float> out) {
        return hocket::all_reduce_async(comm, in, out, std::plus<>{}, hocket::with(hocket::ring));
      },
      [](const auto& comm, std::span<float> in, std::span<float> out) {
        hocket::all_reduce(comm, in, out, std::plus<>{}, for_a_moment.and_also(hocket::ring));
      });
  check_late(
      [](const auto& comm, std::span<float> in, std::span<float> out) {
        return hocket::all_reduce_async(comm, in, out, std::plus<>{}, hocket::with(hocket::two_shot));
      },
      [](const auto& comm, std::span<float> in, std::span<float> out) {
        hocket::all_reduce(comm, in, out, std::plus<>{}, for_a_moment.and_also(hocket::two_shot));
      });
}
