// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Requests to the TCP store's server, in any order, from ranks that join, leave, fail and wait too long. Each step
/// takes a byte for the event, one for the rank, and the data that the event needs.
#include "fuzz.hpp"

#include <hocket/bootstrap/rendezvous.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace {

using fuzz::require;
namespace detail = hocket::bootstrap::detail;
using hocket::deadline;

class world {
 public:
  explicit world(fuzz::input& in) : in_(in) {}

  void run() {
    for (int step = 0; step < 200 && !in_.empty(); ++step) {
      const unsigned what = in_.byte() % 5;
      const unsigned rank = in_.byte() % ranks;
      if (what == 0) greet(rank);
      if (what == 1 || what == 2) ask(rank);
      if (what == 3) leave(rank, in_.byte());
      if (what == 4) {
        now_ += std::chrono::nanoseconds(in_.byte());
        server_.expire(now_);
      }
      take_answers();
    }
    server_.close();
    take_answers();
    for (const bool waits : waits_) require(!waits, "at the end each request has an answer");
  }

 private:
  static constexpr unsigned ranks = 3;

  void greet(unsigned rank) {
    detail::hello greeting;
    greeting.rank = static_cast<std::int32_t>(rank);
    greeting.ranks = ranks;
    greeting.token = "token";
    const unsigned odd = in_.byte();
    if (odd == 1) greeting.rank = static_cast<std::int32_t>(in_.byte()) - 128;
    if (odd == 2) greeting.ranks = static_cast<std::int32_t>(in_.byte()) - 128;
    if (odd == 3) greeting.token = "x";
    if (odd == 4) greeting.version = in_.byte() * 0x1010101U;
    if (odd == 5) greeting.byte_order = in_.byte() * 0x1010101U;
    const detail::reply verdict = server_.greet(greeting);
    check(verdict);
    if (verdict.status != 0) return;
    require(greeting.rank >= 0 && greeting.rank < static_cast<std::int32_t>(ranks), "only valid ranks are admitted");
    bool& here = here_[static_cast<std::size_t>(greeting.rank)];
    require(!here, "a rank is admitted only if it is not present");
    here = true;
  }

  /// Sends a request, except if the rank waits for an answer: then the server does not read its requests.
  void ask(unsigned rank) {
    detail::request what;
    const unsigned kind = in_.byte();
    what.kind = static_cast<detail::request_kind>(1 + kind % 4);
    what.key = std::string(1, static_cast<char>('a' + kind / 4 % 3));
    what.number = static_cast<std::int64_t>(in_.byte() * 0x0101010101010101U);
    const auto value = in_.piece(in_.byte() % 4);
    what.value.assign(value.begin(), value.end());
    const unsigned patience = in_.byte();
    what.nanoseconds = patience < 250 ? patience : ~std::uint64_t{0} >> (patience % 5);
    if (!here_[rank] || waits_[rank]) return;
    waits_[rank] = true;
    server_.handle(static_cast<int>(rank), std::move(what), now_);
  }

  void leave(unsigned rank, unsigned how) {
    if (!here_[rank]) return;
    here_[rank] = waits_[rank] = false;
    if (how % 4 == 2) check(server_.cancel(static_cast<int>(rank), now_));
    const std::array ways{detail::leave_kind::goodbye, detail::leave_kind::lost, detail::leave_kind::cancelled};
    server_.leave(static_cast<int>(rank), ways[how % 4 % 3]);
  }

  void take_answers() {
    for (const auto& each : server_.take_answers()) {
      require(each.rank >= 0 && each.rank < static_cast<int>(ranks), "the receiver of an answer is a rank");
      bool& waits = waits_[static_cast<std::size_t>(each.rank)];
      require(waits, "a rank gets an answer only if it waits for one");
      waits = false;
      check(each.what);
    }
  }

  static void check(const detail::reply& what) {
    require(what.status == 0 || what.status == detail::status_server_closing ||
                fuzz::is_known(static_cast<int>(what.status)),
            "a status is 0, that of an error, or status_server_closing");
    require(what.peer >= -1 && what.peer < static_cast<int>(ranks), "the peer of a reply is a rank or -1");
    require(what.status == 0 || what.body != nullptr, "a refusal has a reason");
  }

  fuzz::input& in_;
  detail::rendezvous server_{ranks, "token"};
  deadline::clock::time_point now_{std::chrono::seconds(1)};
  std::array<bool, ranks> here_{};
  std::array<bool, ranks> waits_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  world(in).run();
  return 0;
}
