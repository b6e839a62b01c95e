// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "team.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/operation/operations.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

#include <sched.h>
#include <unistd.h>

namespace perf {

namespace {

rank_facts own_facts(int usable_cores) {
  rank_facts own;
  own.process = ::getpid();
  own.core = ::sched_getcpu();
  own.usable_cores = usable_cores;
  static_cast<void>(::gethostname(own.host.data(), own.host.size() - 1));
  return own;
}

template <class T>
std::vector<T> of_all(any_communicator comm, const T& own) {
  return std::visit(
      [&](const auto* on) {
        std::vector<T> all(static_cast<std::size_t>(on->size()));
        hocket::all_gather(*on, std::span(&own, 1), all);
        return all;
      },
      comm);
}

/// Describes the transports of messages to the next rank, and whether ranks read each other's memory.
std::string transport_of(any_communicator comm) {
  std::string text = "local: threads of one process";
  bool reads = true;
  if (const auto* const on = std::get_if<const hocket::ucx::communicator*>(&comm)) {
    auto& state = hocket::detail::communicator_access::state(**on);
    const int next = (state.rank() + 1) % state.size();
    text = "ucx: processes, messages by";
    if (next == state.rank()) text = "ucx: a single process";
    for (const std::string& each :
         next == state.rank() ? std::vector<std::string>() : state.domain()->transports_to(next)) {
      text += ' ' + each;
    }
    reads = state.has_windows();
  }
  return text + (reads ? "; ranks read each other's memory" : "; ranks can't read each other's memory");
}

}  // namespace

void pin_to_core(int which) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  which %= std::max(1, CPU_COUNT(&usable));
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || which-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

team::team(any_communicator comm, bool pin) : comm_(comm), transport_(transport_of(comm)) {
  rank_ = std::visit([](const auto* on) { return on->rank(); }, comm);
  const int usable_cores = hocket::platform::usable_cores();
  facts_ = of_all(comm, own_facts(usable_cores));
  if (!pin) return;
  const auto& own_host = facts_[static_cast<std::size_t>(rank_)].host;
  const auto before = std::count_if(facts_.begin(), facts_.begin() + rank_,
                                    [&](const rank_facts& each) { return each.host == own_host; });
  pin_to_core(static_cast<int>(before));
  facts_ = of_all(comm, own_facts(usable_cores));
}

bool team::outnumbers_cores() const {
  return std::any_of(facts_.begin(), facts_.end(), [&](const rank_facts& one) {
    const auto neighbours =
        std::count_if(facts_.begin(), facts_.end(), [&](const rank_facts& other) { return other.host == one.host; });
    return neighbours > one.usable_cores;
  });
}

void team::barrier() const {
  std::visit([](const auto* on) { hocket::barrier(*on); }, comm_);
}

std::vector<double> team::gather(double value) const { return of_all(comm_, value); }
std::vector<usage> team::gather(const usage& value) const { return of_all(comm_, value); }

usage team::locate(usage own) const {
  const rank_facts& here = facts_[static_cast<std::size_t>(rank_)];
  const auto first = [&](const auto& is_here) {
    return static_cast<std::int32_t>(std::find_if(facts_.begin(), facts_.end(), is_here) - facts_.begin());
  };
  own.host = first([&](const rank_facts& each) { return each.host == here.host; });
  own.process = first([&](const rank_facts& each) { return each.host == here.host && each.process == here.process; });
  return own;
}

std::uint64_t team::sum(std::uint64_t value) const {
  std::uint64_t total = 0;
  std::visit([&](const auto* on) { hocket::all_reduce(*on, std::span(&value, 1), std::span(&total, 1)); }, comm_);
  return total;
}

void team::average(std::vector<double>& seconds, averaging how) const {
  std::visit(
      [&](const auto* on) {
        switch (how) {
          case averaging::rank_0: return hocket::broadcast(*on, seconds, hocket::root{0});
          case averaging::mean: return hocket::all_reduce(*on, hocket::in_place(seconds));
          case averaging::shortest: return hocket::all_reduce(*on, hocket::in_place(seconds), hocket::minimum{});
          case averaging::longest: return hocket::all_reduce(*on, hocket::in_place(seconds), hocket::maximum{});
        }
      },
      comm_);
  if (how != averaging::mean) return;
  for (double& each : seconds) each /= size();
}

}  // namespace perf
