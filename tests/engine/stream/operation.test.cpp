// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans on streams give the bits that the host's engine gives for the same plan, in place or not, once or repeatedly;
// and the enqueued steps are those of the plan.
#include "engine/stream/device_ranks.hpp"
#include "engine/stream/plans.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/engine/stream/operation.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/plan/collective/broadcast.hpp>
#include <hocket/plan/collective/double_tree.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/push.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/in_place.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/scalar/scalar.hpp>
#include <hocket/transport/cuda_ipc/word_layout.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace hocket_test;
namespace plan = hocket::plan;
using plan::collective_kind;

namespace {

struct observed {
  observed(plan::any_algorithm plan, int of, int at)
      : how(std::move(plan)), ranks(of), rank(at), steps(how.shape(of).lanes) {}

  plan::any_algorithm how;
  int ranks;
  int rank;
  std::vector<unsigned> steps;  ///< of each lane
  bool as_listed = true;

  /// True if each lane was observed `times` times, with the listed steps.
  bool complete(unsigned times) const {
    bool all = as_listed;
    for (unsigned lane = 0; lane < steps.size(); ++lane) {
      all = all && steps[lane] == times * how.length(ranks, rank, lane);
    }
    return all;
  }
};

void observe(void* context, const hocket::completed_step& event) {
  observed& seen = *static_cast<observed*>(context);
  unsigned& steps = seen.steps[event.lane];
  const unsigned position = steps % seen.how.length(seen.ranks, seen.rank, event.lane);
  seen.as_listed = seen.as_listed && event.position == position &&
                   event.what == seen.how.at(seen.ranks, seen.rank, event.lane, position);
  ++steps;
}

/// Buffers of one operation on a rank.
template <class T>
struct device_case {
  T* in = nullptr;
  T* out = nullptr;
  std::size_t size = 0;  ///< of `out`
  std::unique_ptr<device_operation> work;
  std::unique_ptr<observed> seen;

  template <class Op>
  hocket::failure bind(device_rank& me, const plan::any_algorithm& how, std::size_t block, bool in_place,
                       const Op& op) {
    const collective_kind collective = how.collective().kind;
    const std::vector<T> mine = samples<T>(me.rank(), elements(how, plan::region::in, block, me.size()));
    size = elements(how, plan::region::out, block, me.size());
    const std::size_t own = block * static_cast<std::size_t>(me.rank());
    if (collective == collective_kind::broadcast) {
      out = me.upload(mine);
    } else if (!in_place) {
      in = me.upload(mine);
      out = me.allocate<T>(size);
    } else if (collective == collective_kind::reduce_scatter) {
      in = me.upload(mine);
      out = in + own;
    } else {
      out = me.allocate<T>(size);
      in = out + (collective == collective_kind::all_gather ? own : 0);
      if (!mine.empty()) std::memcpy(static_cast<void*>(in), mine.data(), mine.size() * sizeof(T));
    }
    seen = std::make_unique<observed>(in_place && block > 0 ? how.for_in_place() : how, me.size(), me.rank());
    return me.bind({.plan = how,
                    .block_elements = block,
                    .element_kernel = &queue_kernel_of<Op, T>,
                    .operation = &op,
                    .in = reinterpret_cast<ipc::address>(in),
                    .out = reinterpret_cast<ipc::address>(out),
                    .observer = {&observe, seen.get()}},
                   work);
  }

  /// Compares the result after `times` runs.
  std::string compare(const std::vector<T>& expected, unsigned times = 1) const {
    if (!seen->complete(times)) return "steps are not those of the plan; ";
    const std::span<const T> got(out, size);
    return same_bytes<T>(got, expected) ? "" : first_difference<T>(got, expected) + "; ";
  }
};

template <class T, class Op>
void check_plans(int ranks, kind_of_ranks kind, const std::vector<std::size_t>& blocks, const Op& op) {
  std::vector<plan::any_algorithm> all = plans_on(ranks);
  if (!hocket::is_commutative_v<Op, T>) {
    std::erase_if(all, [&](const plan::any_algorithm& how) { return !keeps_rank_order(how, ranks); });
  }
  std::vector<std::pair<plan::any_algorithm, std::size_t>> cases;
  std::vector<vectors<T>> expected;
  for (const plan::any_algorithm& how : all) {
    for (const std::size_t block : blocks) {
      cases.emplace_back(how, block);
      expected.push_back(on_host<T>(how, ranks, block, op));
    }
  }
  device_ranks(ranks, kind).run_in_group([&](device_rank& me) {
    std::string text;
    const ipc::stream_handle stream = me.stream();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto& [how, block] = cases[i];
      for (const bool in_place : {false, true}) {
        device_case<T> one;
        hocket::failure found = one.bind(me, how, block, in_place, op);
        if (!found) found = one.work->enqueue(stream);
        if (!found) found = one.work->finish(soon());
        const std::string wrong =
            found ? found.message() : one.compare(expected[i][static_cast<std::size_t>(me.rank())]);
        if (wrong.empty()) continue;
        text += std::string(how.name()) + " of " + std::to_string(block) + (in_place ? " in place: " : ": ") + wrong;
      }
    }
    return text;
  });
}

}  // namespace

TEST_CASE("plans on streams give the host's bits for various numbers of ranks and elements") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    for (const kind_of_ranks kind : {kind_of_ranks::threads, kind_of_ranks::processes}) {
      INFO(ranks << (kind == kind_of_ranks::threads ? " threads" : " processes"));
      check_plans<float>(ranks, kind, {0, 1, 1001}, std::plus<>());
      if (ranks == 3) check_plans<float>(ranks, kind_of_ranks::pairs, {1, 1001}, std::plus<>());
      if (ranks == 3) check_plans<float>(ranks, kind, {100'003}, std::plus<>());
    }
  }
}

TEST_CASE("plans on streams give the host's bits for operations that do not commute, and with wide accumulators") {
  for (const int ranks : {2, 3, 8}) {
    check_plans<affine_map>(ranks, kind_of_ranks::processes, {1, 129}, compose());
    check_plans<hocket::half>(ranks, kind_of_ranks::threads, {1, 257}, std::plus<>());
  }
}

TEST_CASE("several operations can be enqueued repeatedly without a wait between them") {
  const int ranks = 5;
  const std::size_t block = 64;
  std::vector<vectors<float>> expected;
  const std::vector<plan::any_algorithm> all = plans_on(ranks);
  for (const plan::any_algorithm& how : all) expected.push_back(on_host<float>(how, ranks, block, std::plus<>()));
  for (const bool two_streams : {false, true}) {
    device_ranks together(ranks);
    if (two_streams) together.without_batches();
    together.run_in_group([&](device_rank& me) -> std::string {
      const std::plus<> op;
      const ipc::stream_handle streams[2] = {me.stream(), me.stream()};
      std::vector<device_case<float>> work(all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (hocket::failure found = work[i].bind(me, all[i], block, false, op)) return found.message();
      }
      for (int round = 0; round < 20; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
          const std::size_t k = (i * 2 + static_cast<std::size_t>(round)) % all.size();
          if (hocket::failure found = work[k].work->enqueue(streams[two_streams ? i % 2 : 0])) return found.message();
        }
      }
      for (const ipc::stream_handle each : streams) {
        if (hocket::failure found = me.group().finish(each, soon())) return found.message();
      }
      std::string text;
      for (std::size_t i = 0; i < all.size(); ++i) {
        text += work[i].compare(expected[i][static_cast<std::size_t>(me.rank())], 20);
      }
      return text;
    });
  }
}

TEST_CASE("a graph of operations gives right results when it is replayed 1000 times") {
  for (const int ranks : {2, 3}) {
    device_ranks(ranks, kind_of_ranks::threads).run_in_group([&](device_rank& me) -> std::string {
      const std::plus<> op;
      const ipc::stream_handle stream = me.stream();
      device_case<double> one, two, three;
      hocket::failure found = one.bind(me, plan::two_shot{}, 33, false, op);
      // The result goes into the next operation, so that each replay gives other bits.
      if (!found) found = two.bind(me, plan::one_shot{}, 33, true, op);
      if (!found) found = three.bind(me, plan::direct_broadcast{1}, 33, false, op);
      if (found) return found.message();
      std::vector<double> ones(33, 1.0 + me.rank());
      std::memcpy(two.out, ones.data(), 33 * sizeof(double));
      host_queue& queue = host_queue::of(stream);
      queue.begin_capture();
      for (auto* const each : {&one, &two, &three}) {
        if (!found) found = each->work->enqueue(stream);
      }
      const host_queue::graph graph = queue.end_capture();
      for (int i = 0; i < 1000 && !found; ++i) queue.replay(graph);
      if (!found) found = me.group().finish(stream, soon());
      if (found) return found.message();
      // Each replay multiplies the sum of ranks by their number, except for rounding.
      double expected = ranks * (ranks + 1) / 2.0;
      for (int i = 1; i < 1000; ++i) expected *= ranks;
      for (int i = 0; i < 33; ++i) {
        if (two.out[i] != expected) return "after 1000 replays: " + std::to_string(two.out[i]);
      }
      if (one.out[5] == 0 || three.out[7] != sample<double>(1, 7)) return "other operations are wrong";
      return "";
    });
  }
}

TEST_CASE("a graph of plans with messages can be replayed") {
  const int ranks = 3;
  device_ranks(ranks, kind_of_ranks::threads).run_in_group([&](device_rank& me) -> std::string {
    const std::plus<> op;
    const ipc::stream_handle stream = me.stream();
    device_case<double> ring, tree;
    hocket::failure found = ring.bind(me, plan::ring_all_reduce{}, 33, true, op);
    if (!found) found = tree.bind(me, plan::double_tree{.chunks_per_half = 2}, 33, true, op);
    if (found) return found.message();
    for (auto* const each : {&ring, &tree}) std::fill_n(each->out, 33, 1.0 + me.rank());
    host_queue& queue = host_queue::of(stream);
    queue.begin_capture();
    for (auto* const each : {&ring, &tree}) {
      if (!found) found = each->work->enqueue(stream);
    }
    const host_queue::graph graph = queue.end_capture();
    constexpr int times = 20;
    for (int i = 0; i < times && !found; ++i) queue.replay(graph);
    if (!found) found = me.group().finish(stream, soon());
    if (found) return found.message();
    double expected = 6;
    for (int i = 1; i < times; ++i) expected *= ranks;
    for (int i = 0; i < 33; ++i) {
      if (ring.out[i] != expected || tree.out[i] != expected) return "a replay was wrong or is missing";
    }
    return "";
  });
}

TEST_CASE("scratch that peers read is used again by later operations, and freed at the end") {
  device_ranks(3).run_in_group([&](device_rank& me) -> std::string {
    const std::plus<> op;
    const ipc::stream_handle stream = me.stream();
    const auto once = [&](std::size_t block) -> std::string {
      device_case<float> one;
      hocket::failure found = one.bind(me, plan::recursive_doubling{}, block, false, op);
      if (!found) found = one.work->enqueue(stream);
      if (!found) found = one.work->finish(soon());
      return found ? found.message() : "";
    };
    std::string text = once(100);
    text += once(100);  // the last operation is retained until the next one
    const std::size_t before = me.group().peer_visible().size();
    for (int i = 0; i < 20; ++i) text += once(90);
    if (me.group().peer_visible().size() != before) text += "more scratch was allocated each time; ";
    return text;
  });
}

TEST_CASE("a fused launch of the first rank gives the host's bits on all ranks of a device, mixed with other plans") {
  for (const int ranks : {1, 2, 3, 8}) {
    for (const kind_of_ranks kind : {kind_of_ranks::threads, kind_of_ranks::processes}) {
      for (const std::size_t block : {0U, 1U, 1001U}) {
        const auto expected = on_host<float>(plan::one_shot{}, ranks, block, std::plus<>());
        device_ranks(ranks, kind).run_in_group([&](device_rank& me) -> std::string {
          const std::plus<> op;
          const std::vector<float> mine = samples<float>(me.rank(), block);
          const ipc::stream_handle stream = me.stream();
          float* const in = me.upload(mine);
          float* const out = me.rank() % 2 == 0 ? me.allocate<float>(block) : in;  // in place on some ranks
          std::unique_ptr<device_operation> fused;
          device_case<float> other;
          hocket::failure found = me.bind({.plan = plan::one_shot{},
                                           .block_elements = block,
                                           .element_kernel = &queue_kernel_of<std::plus<>, float>,
                                           .operation = &op,
                                           .in = reinterpret_cast<ipc::address>(in),
                                           .out = reinterpret_cast<ipc::address>(out),
                                           .fused = true},
                                          fused);
          if (!found) found = other.bind(me, plan::two_shot{}, 5, false, op);
          if (!found) found = fused->enqueue(stream);
          for (int i = 0; i < 10 && !found; ++i) found = other.work->enqueue(stream);
          if (!found) found = me.group().finish(stream, soon());
          if (found) return found.message();
          const std::span<const float> got(out, block);
          const auto& right = expected[static_cast<std::size_t>(me.rank())];
          return same_bytes<float>(got, right) ? "" : first_difference<float>(got, right);
        });
      }
    }
  }
}

TEST_CASE("a fused launch is refused with the reason if it is not possible") {
  device_ranks(3, kind_of_ranks::pairs).run_in_group([&](device_rank& me) -> std::string {
    const std::plus<> op;
    float* const buffer = me.allocate<float>(30);
    hocket::detail::stream_binding what{.plan = plan::one_shot{},
                                        .block_elements = 10,
                                        .element_kernel = &queue_kernel_of<std::plus<>, float>,
                                        .operation = &op,
                                        .in = reinterpret_cast<ipc::address>(buffer),
                                        .out = reinterpret_cast<ipc::address>(buffer),
                                        .fused = true};
    std::string text;
    const auto refused = [&](const std::string& words) {
      std::unique_ptr<device_operation> none;
      const hocket::failure found = me.bind(what, none);
      if (found.code == hocket::errc::invalid_argument && found.message().find(words) != std::string::npos) return;
      text += "not '" + words + "': " + found.message() + "; ";
    };
    refused("all ranks on one device");
    what.plan = plan::direct_all_gather{};
    refused("supports only all_reduce");
    what.plan = plan::one_shot{};
    what.element_kernel = &hocket::kernel::copy_stream_kernel_of<float>;
    refused("no kernel combines");
    return text;
  });
}

TEST_CASE("plans that streams can't run are refused on all ranks with the reason, and the group stays usable") {
  device_ranks(3).run_in_group([&](device_rank& me) -> std::string {
    const std::plus<> op;
    std::string text;
    const auto refused = [&](const plan::any_algorithm& how, const std::string& words, hocket::errc code) {
      device_case<float> one;
      const hocket::failure found = one.bind(me, how, 12, false, op);
      if (found.code == code && found.message().find(words) != std::string::npos) return;
      text += std::string(how.name()) + " is not refused as expected: " + found.message() + "; ";
    };
    const auto wrong = hocket::errc::invalid_argument;
    refused(plan::push_all_reduce{}, "pushes", wrong);
    plan::listed wide("wide", {collective_kind::all_reduce}, 3, {.lanes = 2, .peer_pointers = true});
    wide.lane(0, 1) = {plan::signal(1, 0)};
    wide.lane(1) = {plan::wait(0, 0)};
    refused(wide, "signals in 2 lanes", wrong);
    plan::listed lost("lost", {collective_kind::all_reduce}, 3, {});
    lost.lane(0) = {plan::send(1, {0}, plan::in(0))};
    refused(lost, "without a counterpart", wrong);
    plan::listed circle("circle", {collective_kind::all_reduce}, 3, {});
    circle.lane(0) = {plan::receive(1, {0}, plan::out(0)), plan::send(1, {0}, plan::in(0))};
    circle.lane(1) = {plan::receive(0, {0}, plan::out(0)), plan::send(0, {0}, plan::in(0))};
    refused(circle, "without a counterpart", wrong);
    plan::listed far("far", {collective_kind::all_reduce}, 3, {.peer_pointers = true});
    far.lane(1) = {plan::signal(2, 7)};
    far.lane(2) = {plan::wait(1, 7)};
    refused(far, "an invalid tag", wrong);
    plan::listed deaf("deaf", {collective_kind::all_reduce}, 3, {.peer_pointers = true});
    deaf.lane(1) = {plan::wait(2, 0)};
    refused(deaf, "without a counterpart", wrong);
    plan::listed outside("outside", {collective_kind::all_reduce}, 3, {.peer_pointers = true});
    outside.lane(0) = {plan::copy({0}, plan::in(0), plan::out(1))};
    refused(outside, "beyond the end", wrong);
    if (me.rank() == 1) {
      refused(plan::one_shot{}, "binds a different plan", hocket::errc::mismatch);
    } else {
      refused(plan::two_shot{}, "binds a different plan", hocket::errc::mismatch);
    }
    device_case<float> on_one_rank;
    hocket::failure differs = on_one_rank.bind(me, plan::ring_all_reduce{}, 12, me.rank() == 1, op);
    if (differs.code != hocket::errc::mismatch || differs.message().find("in place") == std::string::npos) {
      text += "in place on one rank: " + differs.message() + "; ";
    }
    device_case<float> overlapping;
    float* const buffer = me.allocate<float>(100);
    std::unique_ptr<device_operation> none;
    hocket::failure found = me.bind({.plan = plan::one_shot{},
                                     .block_elements = 12,
                                     .element_kernel = &queue_kernel_of<std::plus<>, float>,
                                     .operation = &op,
                                     .in = reinterpret_cast<ipc::address>(buffer),
                                     .out = reinterpret_cast<ipc::address>(buffer + (me.rank() == 2 ? 3 : 50))},
                                    none);
    if (found.code != wrong || found.context.peer != 2) text += "overlap: " + found.message() + "; ";
    // Only one rank's memory is from a pool.
    me.driver().pool_memory(me.rank() == 0);
    refused(plan::one_shot{}, "", hocket::errc::unreachable);
    me.driver().pool_memory(false);
    device_case<float> good;
    found = good.bind(me, plan::two_shot{}, 12, false, op);
    if (good.work && good.work->enqueue(nullptr).code != wrong) text += "the default stream is accepted; ";
    if (!found) found = good.work->enqueue(me.stream());
    if (!found) found = good.work->finish(soon());
    return text + (found ? found.message() : "");
  });
}

TEST_CASE("a stream that waits for the default stream is refused for threads on a device, and not for processes") {
  for (const kind_of_ranks kind : {kind_of_ranks::threads, kind_of_ranks::processes}) {
    device_ranks(2, kind).run_in_group([&](device_rank& me) -> std::string {
      const std::plus<> op;
      device_case<float> one;
      hocket::failure found = one.bind(me, plan::two_shot{}, 12, false, op);
      if (!found) found = one.work->enqueue(me.stream(0));
      std::string text;
      if ((found.code == hocket::errc::invalid_argument) != (kind == kind_of_ranks::threads)) text = found.message();
      if (found) found = one.work->enqueue(me.stream());  // the group has not failed
      if (!found) found = one.work->finish(soon());
      return text + (found ? found.message() : "");
    });
  }
}

TEST_CASE("resources of operations in a graph are retained after the operations are destroyed") {
  const int ranks = 3;
  const std::plus<> op;
  const std::vector<plan::any_algorithm> all = plans_on(ranks);
  std::vector<vectors<float>> expected;
  for (const plan::any_algorithm& how : all) expected.push_back(on_host<float>(how, ranks, 64, op));
  device_ranks(ranks).run_in_group([&](device_rank& me) -> std::string {
    const ipc::stream_handle stream = me.stream();
    host_queue& queue = host_queue::of(stream);
    std::vector<device_case<float>> captured(all.size());
    hocket::failure found;
    for (std::size_t i = 0; i < all.size() && !found; ++i) found = captured[i].bind(me, all[i], 64, false, op);
    if (found) return found.message();
    queue.begin_capture();
    for (std::size_t i = 0; i < all.size() && !found; ++i) found = captured[i].work->enqueue(stream);
    const host_queue::graph graph = queue.end_capture();
    for (device_case<float>& each : captured) each.work.reset();
    for (int i = 0; i < 3 && !found; ++i) {  // binding frees complete operations
      device_case<float> other;
      found = other.bind(me, plan::one_shot{}, 64, false, op);
      if (!found) found = other.work->enqueue(stream);
      if (!found) found = other.work->finish(soon());
    }
    queue.replay(graph);
    if (!found) found = me.group().finish(stream, soon());
    if (found) return found.message();
    if (me.group().in_flight() < all.size()) return "mappings and scratch of a graph were released";
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
      text += captured[i].compare(expected[i][static_cast<std::size_t>(me.rank())]);
    }
    return text;
  });
}

TEST_CASE("waits for peers flush their remote writes if the device can") {
  for (const bool can : {true, false}) {
    for (const bool batches : {true, false}) {
      device_ranks together(3);
      if (!batches) together.without_batches();
      for (std::size_t rank = 0; rank < 3 && !can; ++rank) {
        together.drivers().driver(rank).lack(ipc::device_attribute::flush_remote_writes);
      }
      together.run_in_group([&](device_rank& me) -> std::string {
        device_case<float> one;
        const int before = me.driver().waits_without_flush;
        hocket::failure found = one.bind(me, plan::two_shot{}, 100, false, std::plus<>());
        if (!found) found = one.work->enqueue(me.stream());
        if (!found) found = one.work->finish(soon());
        if (found) return found.message();
        return (me.driver().waits_without_flush == before) == can ? "" : "flushes do not match the device";
      });
    }
  }
}

TEST_CASE("a plan with more words than a stream accepts in one batch can be enqueued") {
  constexpr int ranks = 19;  // 5 signals to each of 18 peers, and as many waits of two words
  plan::listed everyone("everyone", {plan::collective_kind::all_gather}, ranks, {.peer_pointers = true});
  for (int rank = 0; rank < ranks; ++rank) {
    for (const auto make : {plan::signal, plan::wait}) {
      for (unsigned tag = 0; tag < ipc::word_layout::tags; ++tag) {
        for (int peer = 0; peer < ranks; ++peer) {
          if (peer != rank) everyone.lane(rank).push_back(make(peer, tag));
        }
      }
    }
  }
  device_ranks(ranks).run_in_group([&](device_rank& me) -> std::string {
    std::unique_ptr<device_operation> work;
    hocket::failure found = me.bind(
        {.plan = everyone, .block_elements = 0, .element_kernel = &hocket::kernel::copy_stream_kernel_of<char>}, work);
    for (int i = 0; i < 3 && !found; ++i) found = work->enqueue(me.stream());
    if (!found) found = work->finish(soon());
    return found ? found.message() : "";
  });
}
