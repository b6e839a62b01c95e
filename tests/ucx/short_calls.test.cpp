// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls on a few bytes between processes, which are mostly completed without an operation state: in any sequence, as
// remembered calls and new ones, with peers on time and late, they give the results of the general path.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/hocket.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace ucx_test;

namespace {

namespace short_calls {

using values = std::vector<std::uint64_t>;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int calls_per_world = 1000;
#else
constexpr int calls_per_world = 4000;
#endif

/// What all ranks decide alike, and what each rank decides for itself.
struct choices {
  std::mt19937 common{11};
  std::mt19937 own;

  unsigned pick(unsigned count) { return static_cast<unsigned>(common() % count); }
  std::size_t length() {
    static constexpr std::size_t lengths[] = {0, 1, 3, 5, 16, 63, 200, 1500, 9000};
    return lengths[pick(std::size(lengths))];
  }
  void be_late() {
    if (own() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
  }
};

std::uint64_t element(int rank, int call, std::size_t i) {
  return static_cast<std::uint64_t>(rank) * 1'000'003 + static_cast<std::uint64_t>(call) * 101 + i;
}

values elements(int rank, int call, std::size_t begin, std::size_t count) {
  values result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = element(rank, call, begin + i);
  return result;
}

values sums(int ranks, int call, std::size_t begin, std::size_t count) {
  values result(count);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) result[i] += element(rank, call, begin + i);
  }
  return result;
}

/// One collective of a kind and length that all ranks choose alike.
template <class Communicator>
void call_some(const Communicator& comm, choices& choose, int call, findings& found) {
  const int ranks = comm.size(), rank = comm.rank();
  const auto count = static_cast<std::size_t>(ranks), own = static_cast<std::size_t>(rank);
  const std::size_t block = choose.length();
  const bool in_place = choose.pick(2) == 0, named = choose.pick(4) == 0;
  const unsigned kind = choose.pick(6);
  const std::string name = "call " + std::to_string(call) + " of kind " + std::to_string(kind) + ", " +
                           std::to_string(block) + " elements" + (in_place ? ", in place" : "") +
                           (named ? ", named algorithm" : "");
  const values whole = elements(rank, call, 0, block * count);
  const values mine = elements(rank, call, 0, block);
  choose.be_late();
  switch (kind) {
    case 0: {
      values out = in_place ? mine : values(block);
      if (in_place) {
        hocket::all_reduce(comm, hocket::in_place(out));
      } else if (named) {
        hocket::all_reduce(comm, mine, out, std::plus<>{}, hocket::with(hocket::recursive_doubling));
      } else {
        hocket::all_reduce(comm, mine, out);
      }
      return found.equal(out, sums(ranks, call, 0, block), name);
    }
    case 1: {
      values out(block);
      if (named) {
        hocket::reduce_scatter(comm, whole, out, std::plus<>{}, hocket::with(hocket::ring));
      } else {
        hocket::reduce_scatter(comm, whole, out);
      }
      return found.equal(out, sums(ranks, call, own * block, block), name);
    }
    case 2: {
      values out(block * count), expected;
      for (int each = 0; each < ranks; ++each) {
        const values theirs = elements(each, call, 0, block);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      const std::span<std::uint64_t> place = std::span(out).subspan(own * block, block);
      if (in_place) std::copy(mine.begin(), mine.end(), place.begin());
      const std::span<const std::uint64_t> in = in_place ? place : std::span(mine);
      hocket::all_gather(comm, in, out);
      return found.equal(out, expected, name);
    }
    case 3: {
      values out = in_place ? whole : values(block * count), expected;
      for (int each = 0; each < ranks; ++each) {
        const values theirs = elements(each, call, own * block, block);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      hocket::all_to_all(comm, in_place ? std::span<const std::uint64_t>(out) : std::span(whole), out);
      return found.equal(out, expected, name);
    }
    case 4: {
      const int root = static_cast<int>(choose.pick(static_cast<unsigned>(ranks)));
      values buffer = rank == root ? mine : values(block);
      hocket::broadcast(comm, buffer, hocket::root{root});
      return found.equal(buffer, elements(root, call, 0, block), name);
    }
    default: hocket::barrier(comm);
  }
}

/// Messages around a ring, of which those with one tag keep their order: started and blocking ones, and ones that are
/// received in another order than their tags were sent.
template <class Communicator>
void exchange_some(const Communicator& comm, choices& choose, int call, findings& found) {
  const int ranks = comm.size(), rank = comm.rank();
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  const std::size_t lengths[] = {choose.length(), choose.length(), choose.length()};
  const std::string name = "messages of call " + std::to_string(call);
  const values a = elements(rank, call, 0, lengths[0]), b = elements(rank, call, 7, lengths[1]),
               c = elements(rank, call, 9, lengths[2]);
  values x(a.size()), y(b.size()), z(c.size());
  choose.be_late();
  const hocket::tag label{call % 5}, other{call % 5 + 1};
  const hocket::peer to{right}, from{left};
  switch (choose.pick(4)) {
    case 0: {
      const hocket::request sending_a = hocket::send_async(comm, a, to, label);
      const hocket::request sending_b = hocket::send_async(comm, b, to, label);
      hocket::recv(comm, x, from, label);
      hocket::recv(comm, y, from, label);
      hocket::send_recv(comm, c, to, z, from, label);
      break;
    }
    case 1: {
      const hocket::request receiving_x = hocket::recv_async(comm, x, from, label);
      const hocket::request receiving_y = hocket::recv_async(comm, y, from, label);
      const hocket::request receiving_z = hocket::recv_async(comm, z, from, other);
      hocket::send(comm, a, to, label);
      hocket::send(comm, c, to, other);
      hocket::send(comm, b, to, label);
      break;
    }
    case 2: {
      const hocket::request sending_a = hocket::send_async(comm, a, to, label);
      const hocket::request sending_c = hocket::send_async(comm, c, to, other);
      const hocket::request sending_b = hocket::send_async(comm, b, to, label);
      choose.be_late();
      hocket::recv(comm, z, from, other);
      hocket::recv(comm, std::as_writable_bytes(std::span(x)), from, label);
      hocket::recv(comm, y, from, label);
      break;
    }
    default:
      hocket::send_recv(comm, a, to, x, from, label);
      hocket::send_recv(comm, b, to, y, from, label);
      hocket::send_recv(comm, c, to, z, from, other);
  }
  found.equal(x, elements(left, call, 0, x.size()), name + ", the first");
  found.equal(y, elements(left, call, 7, y.size()), name + ", the second");
  found.equal(z, elements(left, call, 9, z.size()), name + ", of another tag");
}

template <class Communicator>
void make_calls(const Communicator& comm, int calls, findings& found) {
  choices choose;
  choose.own.seed(static_cast<unsigned>(comm.rank()));
  for (int call = 0; call < calls; ++call) {
    choose.pick(3) == 0 ? exchange_some(comm, choose, call, found) : call_some(comm, choose, call, found);
  }
}

}  // namespace short_calls
}  // namespace

TEST_CASE("short calls and messages in any sequence give exact results, also if ranks are late") {
  using namespace short_calls;
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const route& way : {shared_memory, posix_memory, network}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              make_calls(comm, calls_per_world / (way.windows ? ranks : 4 * ranks), found);
            }) == "");
    }
  }
}

TEST_CASE("short messages are received in the order of their tag, in whatever order of tags, also between threads") {
  for (const int ranks : {1, 2, 3, 5}) {
    std::atomic<int> wrong{0};
    hocket::local::run(ranks, [&](auto comm) {
      findings found("rank " + std::to_string(comm.rank()) + ", a thread");
      short_calls::make_calls(comm, short_calls::calls_per_world / ranks, found);
      if (found.any()) ++wrong;
    });
    INFO(ranks << " threads");
    CHECK(wrong == 0);
  }
}
