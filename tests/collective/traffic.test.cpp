// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The traffic that a communicator reports, compared with the volumes of the algorithms.
#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/hocket.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using hocket_test::on_ranks;
using hocket_test::thread_rank;

namespace {

/// Traffic that `call` adds on this rank.
template <class Call>
hocket::traffic moved_by(thread_rank& me, Call call) {
  const hocket::traffic before = me.comm().traffic();
  call();
  return me.comm().traffic() - before;
}

std::string make_explanation(const hocket::traffic& moved) {
  return std::to_string(moved.sent) + " sent, " + std::to_string(moved.read) + " read";
}

}  // namespace

TEST_CASE("a communicator counts the bytes that its rank has sent and read") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      const auto p = static_cast<std::size_t>(me.size()), others = p - 1;
      const std::size_t count = 60 * p, bytes = count * sizeof(float), part = bytes / p;
      std::vector<float> in(count, 1), out(count);
      const auto check = [&](const char* name, const hocket::traffic& expected, auto call) {
        const hocket::traffic moved = moved_by(me, call);
        me.check(moved == expected, [&] {
          return std::string(name) + ": " + make_explanation(moved) + " instead of " + make_explanation(expected);
        });
      };
      const auto all_reduce = [&](const auto& algorithm) {
        return [&] { hocket::all_reduce(me.comm(), in, out, std::plus<>{}, hocket::with(algorithm)); };
      };
      check("ring", {2 * others * part, 0}, all_reduce(hocket::ring));
      check("two_shot", {0, 2 * others * part}, all_reduce(hocket::two_shot));
      check("one_shot", {0, others * bytes}, all_reduce(hocket::one_shot));
      check("push", {others * sizeof(float), 0}, [&] {
        hocket::all_reduce(me.comm(), std::span<const float>(in).first(1), std::span<float>(out).first(1));
      });
      check("barrier", {}, [&] { hocket::barrier(me.comm()); });
      check("all_gather", {0, others * part}, [&] {
        hocket::all_gather(me.comm(), std::span<const float>(in).first(60), out, hocket::with(hocket::direct));
      });
      if (me.size() == 1) return;
      const int next = (me.rank() + 1) % me.size(), last = (me.rank() + me.size() - 1) % me.size();
      check("send_recv", {bytes, 0},
            [&] { hocket::send_recv(me.comm(), in, hocket::peer{next}, out, hocket::peer{last}); });
    });
  }
}
