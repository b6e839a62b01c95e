// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If memory runs out anywhere within a call, the call ends with an error that reports this, on all ranks.
#include "collective/cases.hpp"
#include "support/short_memory.hpp"

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/send_recv.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/operation/operations.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

using communicator = hocket::local::communicator;
using outcome = std::optional<hocket::failure>;  ///< cause of the failure, if a call failed

/// Long enough that peers read a vector in place and wait for each other.
constexpr std::size_t many = 20000;

/// Buffers of calls. They outlive the ranks, because a peer may read them once more after a failure.
struct memory_of_rank {
  explicit memory_of_rank(int ranks)
      : counts(static_cast<std::size_t>(ranks), 7), in(many, 1), out(many), all(7 * counts.size()), sums(all) {}
  std::vector<std::size_t> counts;
  std::vector<float> in, out, all, sums;
};

template <class Call>
outcome thrown_by(Call call) {
  try {
    call();
  } catch (const hocket::error& found) {
    return found.cause();
  }
  return std::nullopt;
}

outcome coded(const std::error_code& code) {
  if (!code) return std::nullopt;
  return hocket::failure{code, {}, {}};
}

/// One form of a call: blocking, with an error code, or asynchronous.
struct call {
  std::string name;
  std::function<outcome(const communicator&, memory_of_rank&)> run;
};

template <class Blocks, class Starts>
void add_forms(std::vector<call>& to, const std::string& name, Blocks blocks, Starts starts) {
  to.push_back(
      {name, [=](const communicator& comm, memory_of_rank& at) { return thrown_by([&] { blocks(comm, at); }); }});
  to.push_back({name + ", with a code", [=](const communicator& comm, memory_of_rank& at) {
                  std::error_code code;
                  blocks(comm, at, code);
                  return coded(code);
                }});
  to.push_back({name + ", asynchronous", [=](const communicator& comm, memory_of_rank& at) {
                  return thrown_by([&] { starts(comm, at).wait(); });
                }});
  to.push_back({name + ", asynchronous and tested", [=](const communicator& comm, memory_of_rank& at) {
                  return thrown_by([&] {
                    hocket::request started = starts(comm, at);
                    while (!started.test()) {}
                    started.wait();
                  });
                }});
}

template <class Op, class Options>
void add_all_reduce(std::vector<call>& to, const std::string& name, std::size_t size, Op op, Options options) {
  const auto in = [=](memory_of_rank& at) { return std::span<const float>(at.in).first(size); };
  const auto out = [=](memory_of_rank& at) { return std::span(at.out).first(size); };
  add_forms(
      to, name,
      [=](const communicator& comm, memory_of_rank& at, auto&... code) {
        hocket::all_reduce(comm, in(at), out(at), op, options, code...);
      },
      [=](const communicator& comm, memory_of_rank& at) {
        return hocket::all_reduce_async(comm, in(at), out(at), op, options);
      });
}

std::vector<call> all_calls() {
  using hocket::with;
  std::vector<call> result;
  add_all_reduce(result, "a small all_reduce", 1, std::plus<>{}, with());
  add_all_reduce(result, "all_reduce", many, std::plus<>{}, with());
  add_all_reduce(result, "an average", many, hocket::average{}, with(hocket::ring));
  add_all_reduce(result, "all_reduce on two lanes", many, std::plus<>{}, with(hocket::double_tree));
  add_all_reduce(result, "a checksummed all_reduce", many, std::plus<>{},
                 with(hocket::ring, hocket::require(hocket::checksummed)));
  add_forms(
      result, "all_gather_v",
      [](const communicator& comm, memory_of_rank& at, auto&... code) {
        hocket::all_gather_v(comm, std::span<const float>(at.in).first(7), at.all, hocket::counts{at.counts}, with(),
                             code...);
      },
      [](const communicator& comm, memory_of_rank& at) {
        return hocket::all_gather_v_async(comm, std::span<const float>(at.in).first(7), std::span(at.all),
                                          hocket::counts{at.counts});
      });
  add_forms(
      result, "all_to_all_v",
      [](const communicator& comm, memory_of_rank& at, auto&... code) {
        hocket::all_to_all_v(comm, at.all, at.sums, hocket::send_counts{at.counts}, hocket::receive_counts{at.counts},
                             with(), code...);
      },
      [](const communicator& comm, memory_of_rank& at) {
        return hocket::all_to_all_v_async(comm, std::span<const float>(at.all), std::span(at.sums),
                                          hocket::send_counts{at.counts}, hocket::receive_counts{at.counts});
      });
  add_forms(
      result, "barrier",
      [](const communicator& comm, memory_of_rank&, auto&... code) { hocket::barrier(comm, with(), code...); },
      [](const communicator& comm, memory_of_rank&) { return hocket::barrier_async(comm); });
  add_forms(
      result, "send_recv",
      [](const communicator& comm, memory_of_rank& at, auto&... code) {
        const int ranks = comm.size();
        hocket::send_recv(comm, at.in, hocket::peer{(comm.rank() + 1) % ranks}, at.out,
                          hocket::peer{(comm.rank() + ranks - 1) % ranks}, hocket::tag{1}, with(), code...);
      },
      [](const communicator& comm, memory_of_rank& at) {
        const int ranks = comm.size();
        return hocket::send_recv_async(comm, std::span<const float>(at.in), hocket::peer{(comm.rank() + 1) % ranks},
                                       std::span(at.out), hocket::peer{(comm.rank() + ranks - 1) % ranks},
                                       hocket::tag{1});
      });
  return result;
}

enum class seen { plenty, did_without, failed };

/// Runs `each`; the last rank's allocation `number` in it fails, if there are so many. `bytes` becomes its size.
seen run_short_of_memory(const call& each, int ranks, long number, std::size_t& bytes) {
  std::atomic<bool> was_short{false};
  std::atomic<int> failed{0};
  std::vector<memory_of_rank> memories(static_cast<std::size_t>(ranks), memory_of_rank(ranks));
  on_ranks(ranks, [&](thread_rank& me) {
    me.at([&] { return each.name + ", allocation " + std::to_string(number); });
    auto& mine = memories[static_cast<std::size_t>(me.rank())];
    const bool is_short = me.rank() == me.size() - 1;
    if (is_short) planned = {number, false, false, 0};
    outcome ended = each.run(me.comm(), mine);
    if (is_short) {
      const shortage was = std::exchange(planned, {});
      was_short = was.has_begun;
      bytes = was.bytes;
    }
    if (ended || is_short) {
      const outcome next = thrown_by([&] { hocket::barrier(me.comm()); });
      me.check(next.has_value() == ended.has_value(), "the next call does not fail exactly if this one failed");
    } else {
      ended = thrown_by([&] { hocket::barrier(me.comm()); });
    }
    if (ended) ++failed;
    if (!ended) return;
    me.check(ended->code == hocket::errc::out_of_memory, [&] { return "another error: " + ended->message(); });
    if (is_short || ended->reason.empty()) return;  // a form with a code gets only the code
    const std::string says = "rank " + std::to_string(me.size() - 1) + " reports: ";
    me.check(ended->reason.find(says) != std::string::npos, [&] { return "the message: " + ended->message(); });
  });
  CHECK((failed == ranks || failed == 0));
  return !was_short ? seen::plenty : failed == 0 ? seen::did_without : seen::failed;
}

/// Like `run_short_of_memory`, but all later allocations of the call fail, too, and the rank then leaves.
seen run_out_of_memory(const call& each, int ranks, long number) {
  std::atomic<bool> was_short{false};
  std::vector<memory_of_rank> memories(static_cast<std::size_t>(ranks), memory_of_rank(ranks));
  std::vector<std::error_code> codes(memories.size());
  hocket::local::run(ranks, [&](const communicator& comm) {
    const auto rank = static_cast<std::size_t>(comm.rank());
    const bool is_short = comm.rank() == ranks - 1;
    if (is_short) planned = {number, true, false, 0};
    outcome ended = each.run(comm, memories[rank]);
    if (is_short) was_short = std::exchange(planned, {}).has_begun;
    if (!is_short && !ended) ended = thrown_by([&] { hocket::barrier(comm); });
    if (ended) codes[rank] = ended->code;
  });
  if (!was_short) return seen::plenty;
  if (!codes.back()) return seen::did_without;
  CHECK(codes.back() == hocket::errc::out_of_memory);
  for (const std::error_code& each_code : codes) CHECK(each_code);
  return seen::failed;
}

void run_out_of_memory_everywhere(std::string_view name) {
  for (const call& each : all_calls()) {
    if (each.name != name) continue;
    for (long number = 0; run_out_of_memory(each, 3, number) != seen::plenty; ++number) REQUIRE(number < 100);
  }
}

}  // namespace

TEST_CASE("a call that runs out of memory on one rank fails with out_of_memory on all ranks or on none") {
  for (const int ranks : {1, 3}) {
    for (const call& each : all_calls()) {
      INFO(each.name << " on " << ranks << " ranks");
      int failures = 0;
      std::set<std::size_t> done_without;
      for (long number = 0;; ++number) {
        REQUIRE(number < 100);
        std::size_t bytes = 0;
        const seen found = run_short_of_memory(each, ranks, number, bytes);
        if (found == seen::plenty) break;
        if (found == seen::failed) ++failures;
        if (found == seen::did_without) done_without.insert(bytes);
      }
      CHECK((failures > 0 || ranks == 1));
      // A buffer that would have been retained for later calls. The number of allocations before it depends on which
      // rank waits, so that two numbers may select it.
      CHECK(done_without.size() <= 1);
    }
  }
}

// If there is no memory to report the failure, peers learn that this rank has left, each time after 2 s.
TEST_CASE("if all further allocations fail, a call with a code returns out_of_memory, and it fails on all ranks") {
  run_out_of_memory_everywhere("a small all_reduce, with a code");
}

TEST_CASE("the same for a call with more allocations", "[.no_memory]") {
  run_out_of_memory_everywhere("an average, with a code");
}

TEST_CASE("the error about a buffer that can't be allocated gives its size") {
  for (const call& each : all_calls()) {
    if (each.name != "an average") continue;
    memory_of_rank at(1);
    on_ranks(1, [&](thread_rank& me) {
      std::string all;
      bool found = false;
      for (long number = 0; number < 9 && !found; ++number) {
        auto comm = hocket::local::connect(std::make_shared<hocket::local::world>(1), 0);
        planned = {number, false, false};
        const outcome ended = each.run(comm, at);
        planned = {};
        if (ended) all += ended->message() + '\n';
        found = ended && ended->message().find("a buffer of 80000 bytes") != std::string::npos;
      }
      me.check(found, [&] { return "no message names the buffer:\n" + all; });
    });
  }
}

TEST_CASE("an operation that throws bad_alloc causes out_of_memory, and the error gives the number of the call") {
  struct greedy {
    float operator()(float, float) const { throw std::bad_alloc(); }
  };
  for (const std::size_t size : {std::size_t{1}, many}) {
    on_ranks(2, [&](thread_rank& me) {
      hocket::barrier(me.comm());
      std::vector<float> in(size), out(size);
      const auto found =
          me.expect(hocket::errc::out_of_memory, [&] { hocket::all_reduce(me.comm(), in, out, greedy{}); });
      me.check(found && std::string(found->what()).find("all_reduce #2 on rank") != std::string::npos,
               [&] { return "no number: " + std::string(found ? found->what() : "none"); });
    });
  }
}

TEST_CASE("the error of allocate gives the number of elements") {
  on_ranks(2, [](thread_rank& me) {
    for (const std::size_t vast : {std::size_t{1} << 60, std::size_t{1} << 62}) {
      const auto found = me.expect(hocket::errc::out_of_memory, [&] { hocket::allocate<float>(me.comm(), vast); });
      me.check(found && std::string(found->what()).find(std::to_string(vast) + " elements of 4") != std::string::npos,
               [&] { return "the message: " + std::string(found ? found->what() : "none"); });
    }
    for (long number = 0; number < 3; ++number) {
      planned = {number, false, false};
      const outcome ended = thrown_by([&] { hocket::allocate<float>(me.comm(), 5); });
      const bool was_short = std::exchange(planned, {}).has_begun;
      me.check(was_short == ended.has_value(), "no error, or one without a reason");
    }
    hocket::barrier(me.comm());
  });
}
