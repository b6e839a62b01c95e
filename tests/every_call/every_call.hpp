// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All calls on a communicator, with known results. Each source of the program makes them with another element type.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/hocket.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace every_call {

/// Counts wrong results, and prints where they occurred.
class findings {
 public:
  explicit findings(std::string where) : where_(std::move(where)) {}

  void check(bool right, const char* what) {
    if (right) return;
    ++wrong_;
    std::fprintf(stderr, "every_call: %s: %s\n", where_.c_str(), what);
  }
  int wrong() const noexcept { return wrong_; }

 private:
  const std::string where_;
  int wrong_ = 0;
};

/// A user-defined operation that is not commutative: of two numbers that are not 0 it returns the first.
struct first_of {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a != T{} ? a : b;
  }
};

inline std::size_t size_of(const auto& comm) { return static_cast<std::size_t>(comm.size()); }

template <class T>
std::vector<T> numbers(std::size_t count, int from) {
  std::vector<T> result(count);
  std::iota(result.begin(), result.end(), static_cast<T>(from));
  return result;
}

template <class T>
bool all_are(const std::vector<T>& values, int value) {
  return std::all_of(values.begin(), values.end(), [&](const T& each) { return each == static_cast<T>(value); });
}

template <class T, class Domain>
void check_reductions(const hocket::communicator<Domain>& comm, findings& found) {
  const int ranks = comm.size(), all = ranks * (ranks + 1) / 2;
  const std::size_t p = size_of(comm);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{5000}}) {
    const std::vector<T> in(count, static_cast<T>(comm.rank() + 1));
    std::vector<T> out(count);
    hocket::all_reduce(comm, in, out);
    found.check(all_are(out, all), "all_reduce");
    hocket::all_reduce(comm, hocket::in_place(out), hocket::maximum{}, hocket::with(hocket::recursive_doubling));
    found.check(all_are(out, all), "all_reduce of one buffer");
    hocket::all_reduce(comm, in, out, first_of{});
    found.check(all_are(out, 1), "all_reduce by a user-defined operation");
    hocket::request started = hocket::all_reduce_async(comm, in, out, std::plus<>{}, hocket::with(hocket::ring));
    started.wait();
    found.check(all_are(out, all), "all_reduce_async");

    const hocket::root last{ranks - 1};
    const bool is_last = comm.rank() == last.rank;
    std::vector<T> result(is_last ? count : 0);
    hocket::reduce(comm, in, result, std::plus<>{}, last);
    found.check(all_are(result, all), "reduce");
    std::vector<T> both = in;
    hocket::reduce_async(comm, hocket::in_place(both), hocket::minimum{}, last).wait();
    found.check(all_are(both, is_last ? 1 : comm.rank() + 1), "reduce_async of one buffer");

    std::vector<T> whole(count * p, static_cast<T>(comm.rank() + 1));
    hocket::reduce_scatter(comm, whole, out);
    found.check(all_are(out, all), "reduce_scatter");
    hocket::reduce_scatter_async(comm, whole, out, hocket::minimum{}).wait();
    found.check(all_are(out, 1), "reduce_scatter_async");

    std::vector<std::size_t> lengths(p, count);
    lengths.back() += 3;
    std::vector<T> uneven(count * p + 3, static_cast<T>(comm.rank() + 1)),
        own(lengths[static_cast<std::size_t>(comm.rank())]);
    hocket::reduce_scatter_v(comm, uneven, own, hocket::counts{lengths});
    found.check(all_are(own, all), "reduce_scatter_v");
  }
}

template <class T, class Domain>
void check_moves(const hocket::communicator<Domain>& comm, findings& found) {
  const int ranks = comm.size(), rank = comm.rank();
  const std::size_t p = size_of(comm);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{700}}) {
    const int length = static_cast<int>(count);
    const std::vector<T> expected = numbers<T>(count * p, 0);
    std::vector<T> all(count * p);
    hocket::all_gather(comm, numbers<T>(count, rank * length), all);
    found.check(all == expected, "all_gather");

    std::vector<std::size_t> lengths(p);
    std::iota(lengths.begin(), lengths.end(), count);
    const auto own = static_cast<std::size_t>(rank);
    const std::size_t total = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    const auto before = static_cast<int>(std::accumulate(lengths.begin(), lengths.begin() + rank, std::size_t{0}));
    std::vector<T> uneven(total);
    hocket::all_gather_v(comm, numbers<T>(lengths[own], before), uneven, hocket::counts{lengths});
    found.check(uneven == numbers<T>(total, 0), "all_gather_v");

    std::vector<T> sent, received(count * p), wanted;
    for (int peer = 0; peer < ranks; ++peer) {
      sent.insert(sent.end(), count, static_cast<T>(rank * ranks + peer));
      wanted.insert(wanted.end(), count, static_cast<T>(peer * ranks + rank));
    }
    hocket::all_to_all(comm, sent, received);
    found.check(received == wanted, "all_to_all");
    const std::vector<std::size_t> even(p, count);
    std::fill(received.begin(), received.end(), T{});
    hocket::all_to_all_v(comm, sent, received, hocket::send_counts{even}, hocket::receive_counts{even});
    found.check(received == wanted, "all_to_all_v");

    std::vector<T> shared = rank == ranks - 1 ? numbers<T>(count, 1) : std::vector<T>(count);
    hocket::broadcast(comm, shared, hocket::root{ranks - 1});
    found.check(shared == numbers<T>(count, 1), "broadcast");

    const hocket::root middle{ranks / 2};
    const bool is_middle = rank == middle.rank;
    std::vector<T> collected(is_middle ? count * p : 0), block(count);
    hocket::gather(comm, numbers<T>(count, rank * length), collected, middle);
    found.check(!is_middle || collected == expected, "gather");
    hocket::scatter(comm, collected, block, middle);
    found.check(block == numbers<T>(count, rank * length), "scatter");
    std::vector<T> parts(is_middle ? total : 0), part(lengths[own]);
    hocket::gather_v(comm, numbers<T>(lengths[own], before), parts, hocket::counts{lengths}, middle);
    found.check(!is_middle || parts == numbers<T>(total, 0), "gather_v");
    hocket::scatter_v_async(comm, parts, part, hocket::counts{lengths}, middle).wait();
    found.check(part == numbers<T>(lengths[own], before), "scatter_v_async");
    hocket::barrier(comm);
    hocket::barrier_async(comm).wait();
  }
}

template <class T, class Domain>
void check_messages(const hocket::communicator<Domain>& comm, findings& found) {
  const int ranks = comm.size(), next = (comm.rank() + 1) % ranks, previous = (comm.rank() + ranks - 1) % ranks;
  const std::vector<T> out(9, static_cast<T>(comm.rank()));
  std::vector<T> in(9);
  hocket::send_recv(comm, out, hocket::peer{next}, in, hocket::peer{previous});
  found.check(all_are(in, previous), "send_recv");
  hocket::request sent = hocket::send_async(comm, out, hocket::peer{previous}, hocket::tag{7});
  hocket::recv(comm, in, hocket::peer{next}, hocket::tag{7});
  sent.wait();
  found.check(all_are(in, next), "send_async and recv");
  hocket::request expected = hocket::recv_async(comm, in, hocket::peer{previous});
  hocket::send(comm, out, hocket::peer{next});
  expected.wait();
  found.check(all_are(in, previous), "send and recv_async");
}

template <class T, class Domain>
void check_the_rest(const hocket::communicator<Domain>& comm, findings& found) {
  const auto part = hocket::split(comm, hocket::color{comm.rank() % 2}, hocket::key{-comm.rank()});
  T one{1}, sum{};
  hocket::all_reduce(part, std::span<const T>(&one, 1), std::span<T>(&sum, 1));
  found.check(sum == static_cast<T>(part.size()), "split");

  auto readable = hocket::allocate<T>(comm, 3);
  found.check(readable.size() == 3 && readable[2] == T{}, "allocate");
  found.check(hocket::explain<T>(comm, hocket::all_reduce, 1000).find("ring") != std::string::npos, "explain");
  if (HOCKET_MISMATCH_DETECTION) {
    found.check(hocket::flight_record(comm).find("all_reduce") != std::string::npos, "flight_record");
  }

  std::error_code code;
  std::vector<T> three(3), two(2);
  hocket::all_reduce(comm, three, two, std::plus<>{}, hocket::with(), code);
  found.check(code == hocket::errc::invalid_argument, "a call with wrong sizes");
}

/// Number of wrong results on this rank.
template <class T, class Domain>
int count_wrong(const hocket::communicator<Domain>& comm, const char* where) {
  findings found(std::string(where) + ", rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()));
  check_reductions<T>(comm, found);
  check_moves<T>(comm, found);
  check_messages<T>(comm, found);
  check_the_rest<T>(comm, found);
  return found.wrong();
}

}  // namespace every_call
