// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives with given block lengths on device memory give the same results as the host's calls, for various lengths.
#include "collective/device/checked_call.hpp"
#include "collective/device/devices.hpp"
#include "support/elements.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using namespace hocket_test;
namespace cuda = hocket::cuda;
using hocket::errc;
using hocket::with;

namespace {

/// Block lengths for `ranks` ranks: all equal; all empty except a long one; some empty; increasing over several chunks.
std::vector<std::vector<std::size_t>> lengths_of(int ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<std::vector<std::size_t>> all(4, std::vector<std::size_t>(p));
  for (std::size_t r = 0; r < p; ++r) {
    all[0][r] = 9;
    all[1][r] = r + 1 == p ? 1500 : 0;
    all[2][r] = r % 2 == 0 ? 0 : 130 + r;
    all[3][r] = 1 + 397 * r;
  }
  return all;
}

std::size_t sum(const std::vector<std::size_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
}

std::size_t before(const std::vector<std::size_t>& lengths, int rank) {
  return std::accumulate(lengths.begin(), lengths.begin() + rank, std::size_t{0});
}

}  // namespace

TEST_CASE("all_gather_v of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto options = with(mine.order(), small_chunks);
      for (const auto& lengths : lengths_of(me.size())) {
        const std::size_t own = lengths[static_cast<std::size_t>(me.rank())];
        const auto values = samples<triple>(me.rank(), own);
        std::vector<triple> expected(sum(lengths));
        hocket::all_gather_v(me.comm(), values, expected, hocket::counts{lengths});
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "all_gather_v of " + std::to_string(sum(lengths)) + ", turn " + std::to_string(turn); });
          check_call<triple>(me, mine, turn, values, expected, [&](auto in, auto out) {
            hocket::all_gather_v(me.comm(), in, out, hocket::counts{lengths}, options);
          });
        }
        // `in` is a block of `out`.
        for (const memory_space where : {memory_space::device, memory_space::pinned}) {
          placed_vector<triple> whole(mine.driver(), expected.size(), where);
          const std::span<triple> block = whole.span().subspan(before(lengths, me.rank()), own);
          mine.driver().queue(mine.stream(), [&] { std::copy(values.begin(), values.end(), block.begin()); });
          as_placed(block, where, [&](auto in) {
            as_placed(whole.span(), where,
                      [&](auto out) { hocket::all_gather_v(me.comm(), in, out, hocket::counts{lengths}, options); });
          });
          std::vector<triple> found;
          whole.read(mine.stream(), found);
          mine.driver().finish_streams();
          me.check(found == expected && whole.intact(), "all_gather_v in place");
        }
      }
    });
  }
}

TEST_CASE("gather_v and scatter_v of device memory give the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto options = with(mine.order(), small_chunks);
      for (const auto& lengths : lengths_of(me.size())) {
        for (std::size_t turn = 0; turn < 6; ++turn) {
          const hocket::root root{static_cast<int>(turn) % me.size()};
          const auto values = samples<triple>(me.rank(), lengths[static_cast<std::size_t>(me.rank())]);
          std::vector<triple> all(me.rank() == root.rank ? sum(lengths) : 0);
          hocket::gather_v(me.comm(), values, all, hocket::counts{lengths}, root);
          me.at([&] { return "gather_v of " + std::to_string(sum(lengths)) + ", turn " + std::to_string(turn); });
          check_call<triple>(me, mine, turn, values, all, [&](auto in, auto out) {
            hocket::gather_v(me.comm(), in, out, hocket::counts{lengths}, root, options);
          });
          me.at([&] { return "scatter_v of " + std::to_string(sum(lengths)) + ", turn " + std::to_string(turn); });
          check_call<triple>(me, mine, turn, all, values, [&](auto in, auto out) {
            hocket::scatter_v(me.comm(), in, out, hocket::counts{lengths}, root, options);
          });
        }
      }
    });
  }
}

TEST_CASE("reduce_scatter_v of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto options = with(mine.order(), small_chunks);
      for (const auto& lengths : lengths_of(me.size())) {
        const std::size_t own = lengths[static_cast<std::size_t>(me.rank())];
        const auto values = samples<affine_map>(me.rank(), sum(lengths));
        std::vector<affine_map> expected(own);
        hocket::reduce_scatter_v(me.comm(), values, expected, hocket::counts{lengths}, compose{});
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "reduce_scatter_v of " + std::to_string(sum(lengths)); });
          check_call<affine_map>(me, mine, turn, values, expected, [&](auto in, auto out) {
            hocket::reduce_scatter_v(me.comm(), in, out, hocket::counts{lengths}, compose{}, options);
          });
        }
        // `out` is a block of `in`; the other blocks stay unchanged.
        std::vector<affine_map> wanted = values;
        std::copy(expected.begin(), expected.end(),
                  wanted.begin() + static_cast<std::ptrdiff_t>(before(lengths, me.rank())));
        for (const memory_space where : {memory_space::device, memory_space::pinned}) {
          placed_vector<affine_map> whole(mine.driver(), values.size(), where);
          whole.write(mine.stream(), values);
          as_placed(whole.span(), where, [&](auto in) {
            as_placed(whole.span().subspan(before(lengths, me.rank()), own), where, [&](auto out) {
              hocket::reduce_scatter_v(me.comm(), in, out, hocket::counts{lengths}, compose{}, options);
            });
          });
          std::vector<affine_map> found;
          whole.read(mine.stream(), found);
          mine.driver().finish_streams();
          me.check(found == wanted && whole.intact(), "reduce_scatter_v in place");
        }
        // An operation in three parts.
        const auto numbers = samples<float>(me.rank(), sum(lengths));
        std::vector<float> average(own);
        const auto two_steps = with(hocket::direct);
        hocket::reduce_scatter_v(me.comm(), numbers, average, hocket::counts{lengths}, hocket::average{}, two_steps);
        check_call<float>(me, mine, 0, numbers, average, [&](auto in, auto out) {
          hocket::reduce_scatter_v(me.comm(), in, out, hocket::counts{lengths}, hocket::average{},
                                   two_steps.and_also(mine.order()).and_also(small_chunks));
        });
      }
    });
  }
}

TEST_CASE("all_to_all_v of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto options = with(mine.order(), small_chunks);
      const auto p = static_cast<std::size_t>(me.size()), r = static_cast<std::size_t>(me.rank());
      // Number of elements that rank `from` sends to rank `to`.
      const auto length = [](std::size_t from, std::size_t to) { return (3 * from + 5 * to) % 7 * 61; };
      std::vector<std::size_t> sent(p), received(p);
      for (std::size_t other = 0; other < p; ++other) {
        sent[other] = length(r, other);
        received[other] = length(other, r);
      }
      const auto values = samples<std::uint16_t>(me.rank(), sum(sent));
      std::vector<std::uint16_t> expected(sum(received));
      hocket::all_to_all_v(me.comm(), values, expected, hocket::send_counts{sent}, hocket::receive_counts{received});
      for (std::size_t turn = 0; turn < 6; ++turn) {
        me.at([&] { return "all_to_all_v, turn " + std::to_string(turn); });
        check_call<std::uint16_t>(me, mine, turn, values, expected, [&](auto in, auto out) {
          hocket::all_to_all_v(me.comm(), in, out, hocket::send_counts{sent}, hocket::receive_counts{received},
                               options);
        });
      }
    });
  }
}

TEST_CASE("counts may be changed as soon as an asynchronous call on device memory has started") {
  on_devices(3, true, [](thread_rank& me, const rank_device& mine) {
    const auto options = with(mine.order(), small_chunks);
    const auto lengths = lengths_of(3)[3];
    const std::size_t own = lengths[static_cast<std::size_t>(me.rank())];
    const auto values = samples<std::int64_t>(me.rank(), sum(lengths));
    std::vector<std::int64_t> gathered(sum(lengths)), scattered(own);
    hocket::all_gather_v(me.comm(), std::span(values).first(own), gathered, hocket::counts{lengths});
    hocket::reduce_scatter_v(me.comm(), values, scattered, hocket::counts{lengths});
    using vector = placed_vector<std::int64_t>;
    constexpr auto device = memory_space::device;
    vector in(mine.driver(), values.size(), device), one(mine.driver(), gathered.size(), device);
    vector two(mine.driver(), own, device);
    in.write(mine.stream(), values);
    std::vector<hocket::request> all;
    {
      std::vector<std::size_t> brief = lengths;
      all.push_back(hocket::all_gather_v_async(me.comm(), cuda::device(in.span().first(own)), cuda::device(one.span()),
                                               hocket::counts{brief}, options));
      all.push_back(hocket::reduce_scatter_v_async(me.comm(), cuda::device(in.span()), cuda::device(two.span()),
                                                   hocket::counts{brief}, std::plus<>{}, options));
      brief.assign(brief.size(), 77);
    }
    for (hocket::request& each : all) each.wait();
    std::vector<std::int64_t> found[2];
    one.read(mine.stream(), found[0]);
    two.read(mine.stream(), found[1]);
    mine.driver().finish_streams();
    me.check(found[0] == gathered && found[1] == scattered, "values");
  });
}

TEST_CASE("counts that do not match the buffers are refused, and counts that differ between ranks are a mismatch") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    placed_vector<float> in(mine.driver(), 5, memory_space::device), out(mine.driver(), 10, memory_space::device);
    const auto options = with(mine.order());
    std::error_code code;
    hocket::all_gather_v(me.comm(), cuda::device(in.span()), cuda::device(out.span()),
                         hocket::counts{std::vector<std::size_t>{5, 6}}, options, code);
    me.check(code == errc::invalid_argument, "sum");
    hocket::reduce_scatter_v(me.comm(), cuda::device(out.span()), cuda::device(in.span()),
                             hocket::counts{std::vector<std::size_t>{10}}, std::plus<>{}, options, code);
    me.check(code == errc::invalid_argument, "number of ranks");
    hocket::all_gather_v(me.comm(), cuda::managed(in.span()), cuda::device(out.span()),
                         hocket::counts{std::vector<std::size_t>{5, 5}}, options, code);
    me.check(code == errc::invalid_argument, "tag");
    me.check(!me.comm().revoked(), "revoked");
    const auto first = static_cast<std::size_t>(me.rank() == 0 ? 5 : 4);
    const std::vector<std::size_t> lengths = {first, 5};
    me.expect(errc::mismatch, [&] {
      hocket::all_gather_v(me.comm(), cuda::device(in.span().first(5)), cuda::device(out.span().first(first + 5)),
                           hocket::counts{lengths}, options);
    });
  });
}
