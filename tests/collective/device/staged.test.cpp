// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives on device memory, staged through the host, between threads: compared with host calls on the same values,
// with streams that execute their work at random times.
#include "collective/device/checked_call.hpp"
#include "collective/device/devices.hpp"
#include "support/elements.hpp"

#include <hocket/operation/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

using namespace hocket_test;
namespace cuda = hocket::cuda;
using hocket::with;

namespace {

// The host can't read a view of device memory, and calls on it need a stream.
using view = hocket::device_buffer<float, cuda::device_memory>;
using communicator = hocket::local::communicator;
using in_order = decltype(with(cuda::stream_ref(static_cast<CUstream_st*>(nullptr))));
template <class Collective, class... Arguments>
constexpr bool compiles(const Collective&) {
  return hocket::valid_call<Collective, const communicator&, Arguments...>;
}
static_assert(!hocket::contiguous_buffer<view> && !std::is_convertible_v<view, std::span<float>> &&
              !std::is_constructible_v<std::span<float>, view> &&
              !std::is_constructible_v<std::span<const float>, view>);
static_assert(compiles<decltype(hocket::all_reduce), view, view, std::plus<>, in_order>(hocket::all_reduce));
static_assert(!compiles<decltype(hocket::all_reduce), view, view>(hocket::all_reduce));
static_assert(!compiles<decltype(hocket::all_reduce), view, view, std::plus<>, hocket::options<>>(hocket::all_reduce));
static_assert(
    !compiles<decltype(hocket::all_reduce), view, std::vector<float>&, std::plus<>, in_order>(hocket::all_reduce));
static_assert(compiles<decltype(hocket::broadcast), view, hocket::root, in_order>(hocket::broadcast));
static_assert(!compiles<decltype(hocket::send), view, hocket::peer>(hocket::send));
static_assert(compiles<decltype(hocket::send), view, hocket::peer, hocket::tag, in_order>(hocket::send));
static_assert(std::is_same_v<decltype(with(hocket::ring, cuda::staging{1}).without<hocket::kind::staging>()),
                             decltype(with(hocket::ring))>);
static_assert(std::is_same_v<decltype(with(cuda::staging{1}).without<hocket::kind::staging>()), hocket::options<>>);

template <class T, class Op, class Options>
void check_all_reduce(thread_rank& me, const rank_device& mine, std::size_t size, const Op& op,
                      const Options& options) {
  const auto values = samples<T>(me.rank(), size);
  std::vector<T> expected(size);
  hocket::all_reduce(me.comm(), values, expected, op, options);
  for (std::size_t turn = 0; turn < 6; ++turn) {
    me.at([&] { return "all_reduce of " + std::to_string(size) + ", turn " + std::to_string(turn); });
    check_call<T>(me, mine, turn, values, expected, [&](auto in, auto out) {
      hocket::all_reduce(me.comm(), in, out, op, options.and_also(mine.order()).and_also(small_chunks));
    });
  }
  // In place, in each kind of memory.
  for (std::size_t turn = 0; turn < 4; ++turn) {
    me.at([&] { return "all_reduce in place of " + std::to_string(size) + ", turn " + std::to_string(turn); });
    const memory_space where = kind_of(turn, me.rank());
    placed_vector<T> both(mine.driver(), size, where, turn % 2);
    both.write(mine.stream(), values);
    as_placed(both.span(), where, [&](auto placed) {
      hocket::all_reduce(me.comm(), hocket::in_place(placed), op,
                         options.and_also(mine.order()).and_also(small_chunks));
    });
    std::vector<T> found;
    both.read(mine.stream(), found);
    mine.driver().finish_streams();
    me.check(same_bytes(std::span<const T>(found), std::span<const T>(expected)),
             [&] { return first_difference(std::span<const T>(found), std::span<const T>(expected)); });
    me.check(both.intact(), "wrote outside the buffer");
  }
}

}  // namespace

TEST_CASE("all_reduce of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      for (const std::size_t size : sizes) {
        check_all_reduce<std::int64_t>(me, mine, size, std::plus<>{}, with());
        check_all_reduce<affine_map>(me, mine, size, compose{}, with());
      }
    });
  }
}

TEST_CASE("algorithms with the same order for all elements, and required exactness, give the host's bits") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      for (const std::size_t size : {std::size_t{7}, std::size_t{257}, std::size_t{2000}}) {
        check_all_reduce<float>(me, mine, size, std::plus<>{}, with(hocket::one_shot));
        check_all_reduce<float>(me, mine, size, std::plus<>{}, with(hocket::two_shot));
        check_all_reduce<float>(me, mine, size, std::plus<>{}, with(hocket::recursive_doubling));
        check_all_reduce<hocket::bfloat16>(me, mine, size, std::plus<>{}, with(hocket::two_shot));
        check_all_reduce<float>(me, mine, size, hocket::average{}, with(hocket::two_shot));
      }
      check_all_reduce<float>(me, mine, 100, std::plus<>{}, with(hocket::require(hocket::rank_count_invariant)));
      check_all_reduce<float>(me, mine, 300, std::plus<>{}, with(hocket::two_shot, hocket::wire<hocket::bfloat16>));
    });
  }
}

TEST_CASE("ring gives the same bits on all ranks and from run to run") {
  for (const int ranks : {2, 3, 5, 8}) {
    std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks)), again(results);
    for (auto* const each : {&results, &again}) {
      on_devices(ranks, true, [&](thread_rank& me, const rank_device& mine) {
        placed_vector<float> both(mine.driver(), 3001, memory_space::device);
        both.write(mine.stream(), samples<float>(me.rank(), both.size()));
        hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(both.span())), std::plus<>{},
                           with(hocket::ring, mine.order(), small_chunks));
        both.read(mine.stream(), (*each)[static_cast<std::size_t>(me.rank())]);
        mine.driver().finish_streams();
      });
    }
    for (const auto& each : results) {
      CHECK(same_bytes(std::span<const float>(each), std::span<const float>(results[0])));
    }
    CHECK(same_bytes(std::span<const float>(again[0]), std::span<const float>(results[0])));
  }
}

TEST_CASE("reduce_scatter of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto p = static_cast<std::size_t>(me.size()), r = static_cast<std::size_t>(me.rank());
      for (const std::size_t size : sizes) {
        const auto values = samples<affine_map>(me.rank(), p * size);
        std::vector<affine_map> expected(size);
        hocket::reduce_scatter(me.comm(), values, expected, compose{});
        const auto options = with(mine.order(), small_chunks);
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "reduce_scatter of " + std::to_string(size) + ", turn " + std::to_string(turn); });
          check_call<affine_map>(me, mine, turn, values, expected, [&](auto in, auto out) {
            hocket::reduce_scatter(me.comm(), in, out, compose{}, options);
          });
        }
        // `out` is a block of `in`; the other blocks stay unchanged.
        std::vector<affine_map> wanted = values;
        std::copy(expected.begin(), expected.end(), wanted.begin() + static_cast<std::ptrdiff_t>(r * size));
        for (const memory_space where : {memory_space::device, memory_space::pinned}) {
          placed_vector<affine_map> whole(mine.driver(), p * size, where);
          whole.write(mine.stream(), values);
          as_placed(whole.span(), where, [&](auto in) {
            as_placed(whole.span().subspan(r * size, size), where,
                      [&](auto out) { hocket::reduce_scatter(me.comm(), in, out, compose{}, options); });
          });
          std::vector<affine_map> found;
          whole.read(mine.stream(), found);
          mine.driver().finish_streams();
          me.check(found == wanted && whole.intact(), "reduce_scatter in place of " + std::to_string(size));
        }
      }
    });
  }
}

TEST_CASE("all_gather of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto p = static_cast<std::size_t>(me.size()), r = static_cast<std::size_t>(me.rank());
      for (const std::size_t size : sizes) {
        const auto values = samples<triple>(me.rank(), size);
        std::vector<triple> expected(p * size);
        hocket::all_gather(me.comm(), values, expected);
        const auto options = with(mine.order(), small_chunks);
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "all_gather of " + std::to_string(size) + ", turn " + std::to_string(turn); });
          check_call<triple>(me, mine, turn, values, expected,
                             [&](auto in, auto out) { hocket::all_gather(me.comm(), in, out, options); });
        }
        for (const memory_space where : {memory_space::device, memory_space::pinned}) {
          placed_vector<triple> whole(mine.driver(), p * size, where);
          const std::span<triple> own = whole.span().subspan(r * size, size);
          mine.driver().queue(mine.stream(), [&] { std::copy(values.begin(), values.end(), own.begin()); });
          as_placed(std::span<const triple>(own), where, [&](auto in) {
            as_placed(whole.span(), where, [&](auto out) { hocket::all_gather(me.comm(), in, out, options); });
          });
          std::vector<triple> found;
          whole.read(mine.stream(), found);
          mine.driver().finish_streams();
          me.check(found == expected && whole.intact(), "all_gather in place of " + std::to_string(size));
        }
      }
    });
  }
}

TEST_CASE("all_to_all of device memory gives the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto p = static_cast<std::size_t>(me.size());
      for (const std::size_t size : sizes) {
        const auto values = samples<std::uint16_t>(me.rank(), p * size);
        std::vector<std::uint16_t> expected(p * size);
        hocket::all_to_all(me.comm(), values, expected);
        const auto options = with(mine.order(), small_chunks);
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "all_to_all of " + std::to_string(size) + ", turn " + std::to_string(turn); });
          check_call<std::uint16_t>(me, mine, turn, values, expected,
                                    [&](auto in, auto out) { hocket::all_to_all(me.comm(), in, out, options); });
        }
        for (const memory_space where : {memory_space::device, memory_space::pinned}) {
          placed_vector<std::uint16_t> both(mine.driver(), p * size, where);
          both.write(mine.stream(), values);
          as_placed(both.span(), where, [&](auto placed) { hocket::all_to_all(me.comm(), placed, placed, options); });
          std::vector<std::uint16_t> found;
          both.read(mine.stream(), found);
          mine.driver().finish_streams();
          me.check(found == expected && both.intact(), "all_to_all in place of " + std::to_string(size));
        }
      }
    });
  }
}

TEST_CASE("broadcast of device memory gives the root's values") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      for (const std::size_t size : sizes) {
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "broadcast of " + std::to_string(size) + ", turn " + std::to_string(turn); });
          const int root = static_cast<int>(turn) % me.size();
          const memory_space where = kind_of(turn, me.rank());
          placed_vector<float> buffer(mine.driver(), size, where, turn % 2);
          buffer.write(mine.stream(), samples<float>(me.rank(), size));
          as_placed(buffer.span(), where, [&](auto placed) {
            hocket::broadcast(me.comm(), placed, hocket::root{root}, with(mine.order(), small_chunks));
          });
          std::vector<float> found;
          buffer.read(mine.stream(), found);
          mine.driver().finish_streams();
          me.check(found == samples<float>(root, size) && buffer.intact(), "wrong values");
        }
      }
    });
  }
}

TEST_CASE("reduce, gather and scatter of device memory give the same result as on the host") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto p = static_cast<std::size_t>(me.size());
      const auto options = with(mine.order(), small_chunks);
      for (const std::size_t size : sizes) {
        for (std::size_t turn = 0; turn < 6; ++turn) {
          const hocket::root root{static_cast<int>(turn) % me.size()};
          const bool is_root = me.rank() == root.rank;
          const auto at = " of " + std::to_string(size) + ", turn " + std::to_string(turn);
          const auto values = samples<affine_map>(me.rank(), size);
          std::vector<affine_map> sum(is_root ? size : 0), all(is_root ? p * size : 0);
          hocket::reduce(me.comm(), values, sum, compose{}, root);
          hocket::gather(me.comm(), values, all, root);
          me.at([&] { return "reduce" + at; });
          check_call<affine_map>(me, mine, turn, values, sum, [&](auto in, auto out) {
            hocket::reduce(me.comm(), in, out, compose{}, root, options);
          });
          me.at([&] { return "gather" + at; });
          check_call<affine_map>(me, mine, turn, values, all,
                                 [&](auto in, auto out) { hocket::gather(me.comm(), in, out, root, options); });
          me.at([&] { return "scatter" + at; });
          check_call<affine_map>(me, mine, turn, all, values,
                                 [&](auto in, auto out) { hocket::scatter(me.comm(), in, out, root, options); });
        }
      }
    });
  }
}

TEST_CASE("copies to the host run ahead of the collective, and later calls use the same resources") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    placed_vector<float> both(mine.driver(), 10 * chunk_bytes / sizeof(float), memory_space::device);
    const auto call = [&] {
      hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(both.span())), std::plus<>{},
                         with(mine.order(), small_chunks));
    };
    mine.driver().copied_to_host.clear();
    call();
    const std::vector<bool> order = mine.driver().copied_to_host;
    me.check(order.size() == 20, "20 copies");
    // As many copies to the host as there are slots, before the first copy back; then they alternate.
    std::size_t ahead = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      ahead += order[i] ? 1U : 0U;
      if (!order[i]) break;
    }
    me.check(ahead == hocket::cuda_ipc::staging_slots, "copies ahead: " + std::to_string(ahead));
    const int pinned = mine.driver().pinned(), streams = mine.driver().streams(), events = mine.driver().events();
    for (int i = 0; i < 10; ++i) call();
    me.check(mine.driver().pinned() == pinned && mine.driver().streams() == streams && mine.driver().events() == events,
             "later calls allocated more");
    me.check(pinned == static_cast<int>(hocket::cuda_ipc::staging_slots), "slots");
  });
}

TEST_CASE("a communicator that is destroyed while copies are in flight lets them complete") {
  host_machine machine;
  processes all(machine, {{0, 0}, {1, 0}});
  {
    std::vector<std::unique_ptr<placed_vector<float>>> buffers;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      buffers.push_back(std::make_unique<placed_vector<float>>(all.driver(rank), 2000, memory_space::device));
    }
    on_ranks(2, [&](thread_rank& me) {
      const auto r = static_cast<std::size_t>(me.rank());
      all.driver(r).be_lazy(3);
      const rank_device mine(all.driver(r));
      buffers[r]->write(mine.stream(), std::vector<float>(2000, 1.5F));
      hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(buffers[r]->span())), std::plus<>{},
                         with(mine.order(), small_chunks));
    });
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(all.driver(rank).pinned() == 0);
      CHECK(all.driver(rank).copies_of_freed == 0);
      const std::vector<float> found(buffers[rank]->span().begin(), buffers[rank]->span().end());
      CHECK(found == std::vector<float>(2000, 3.0F));
    }
  }
  check_clean(machine, all);
}

TEST_CASE("asynchronous calls on device memory can be in flight together and beside host calls") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      host_driver& driver = mine.driver();
      const auto p = static_cast<std::size_t>(me.size()), r = static_cast<std::size_t>(me.rank());
      const auto options = with(mine.order(), small_chunks);
      for (const std::size_t size : {std::size_t{1}, std::size_t{129}, std::size_t{2000}}) {
        const auto values = samples<std::int64_t>(me.rank(), p * size);
        std::vector<std::int64_t> sum(p * size), exchanged(p * size), gathered(p * p * size), block(size),
            beside(p * size);
        hocket::all_reduce(me.comm(), values, sum);
        hocket::all_to_all(me.comm(), values, exchanged);
        hocket::all_gather(me.comm(), values, gathered);
        hocket::reduce_scatter(me.comm(), values, block);
        using vector = placed_vector<std::int64_t>;
        constexpr auto device = memory_space::device;
        vector in(driver, p * size, device), one(driver, p * size, device), both(driver, p * size, device);
        vector two(driver, p * size, device), three(driver, p * p * size, device), four(driver, size, device);
        vector five(driver, size, device);
        in.write(mine.stream(), values);
        both.write(mine.stream(), values);
        five.write(mine.stream(), std::vector<std::int64_t>(size, me.rank()));
        std::vector<hocket::request> all;
        all.push_back(hocket::all_reduce_async(me.comm(), cuda::device(in.span()), cuda::device(one.span()),
                                               std::plus<>{}, options));
        all.push_back(
            hocket::all_reduce_async(me.comm(), hocket::in_place(cuda::device(both.span())), std::plus<>{}, options));
        all.push_back(hocket::all_reduce_async(me.comm(), values, beside));
        all.push_back(hocket::all_to_all_async(me.comm(), cuda::device(in.span()), cuda::device(two.span()), options));
        all.push_back(
            hocket::all_gather_async(me.comm(), cuda::device(in.span()), cuda::device(three.span()), options));
        all.push_back(hocket::reduce_scatter_async(me.comm(), cuda::device(in.span()), cuda::device(four.span()),
                                                   std::plus<>{}, options));
        all.push_back(
            hocket::broadcast_async(me.comm(), cuda::device(five.span()), hocket::root{me.size() - 1}, options));
        // In a different order on each rank.
        for (std::size_t i = 0; i < all.size(); ++i) all[(i * 3 + r) % all.size()].wait();
        std::vector<std::int64_t> found[6];
        one.read(mine.stream(), found[0]);
        both.read(mine.stream(), found[1]);
        two.read(mine.stream(), found[2]);
        three.read(mine.stream(), found[3]);
        four.read(mine.stream(), found[4]);
        five.read(mine.stream(), found[5]);
        driver.finish_streams();
        me.check(found[0] == sum && found[1] == sum && beside == sum, "all_reduce");
        me.check(found[2] == exchanged, "all_to_all");
        me.check(found[3] == gathered, "all_gather");
        me.check(found[4] == block, "reduce_scatter");
        me.check(found[5] == std::vector<std::int64_t>(size, me.size() - 1), "broadcast");
        me.check(one.intact() && both.intact() && two.intact() && three.intact() && four.intact() && five.intact(),
                 "wrote outside the buffers");
      }
    });
  }
}
