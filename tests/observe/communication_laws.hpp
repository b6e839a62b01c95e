// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What must hold for the figures of all ranks of a communicator, on any transport.
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/observe/communication.hpp>
#include <hocket/observe/registry.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/plan/price.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/reference.hpp"

namespace observe_test {

/// Values of all ranks by the name of the metric, labels included.
using figures = std::map<std::string, std::vector<double>>;

inline figures figures_of(const std::vector<hocket::observe::snapshot>& ranks) {
  figures result;
  for (const auto& of_rank : ranks) {
    for (const hocket::observe::family& each : of_rank) {
      for (const hocket::observe::sample& one : each.samples)
        result[hocket::observe::name_of(each.name, one.labels)].push_back(one.value);
    }
  }
  return result;
}

/// Calls of each rank, and bytes of all ranks, by collective.
struct expectation {
  struct of_kind {
    std::uint64_t calls = 0, bytes = 0;
  };
  std::map<std::string, of_kind> kinds;

  void add(const std::string& collective, std::uint64_t bytes, std::uint64_t calls = 1) {
    kinds[collective].calls += calls;
    kinds[collective].bytes += bytes;
  }
  /// Adds calls by `chosen` with blocks of `block` floats.
  void add(const hocket::plan::any_algorithm& chosen, int ranks, std::size_t block, std::uint64_t calls = 1) {
    const auto cost = hocket::plan::price(chosen, ranks, hocket_test::layout_for(chosen, ranks, block), sizeof(float),
                                          hocket::plan::example_machine);
    add(hocket::plan::to_string(chosen.collective().kind), calls * cost.bytes, calls);
  }
};

/// Returns the first law that the figures break; empty if they keep all.
inline std::string broken_law(const figures& found, int ranks, const expectation& expected) {
  const auto value = [&](const std::string& name, const std::string& label, int rank) {
    return found.at(name + '{' + label + "\"}").at(static_cast<std::size_t>(rank));
  };
  const auto with = [&](const char* name, int rank, int peer) {
    return value(name, "peer=\"" + std::to_string(peer), rank);
  };
  double of_peers = 0;
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      of_peers += with("hocket_sent_bytes", a, b) + with("hocket_read_bytes", a, b);
      if (with("hocket_sent_bytes", a, b) != with("hocket_received_bytes", b, a))
        return "rank " + std::to_string(a) + " sent " + std::to_string(with("hocket_sent_bytes", a, b)) +
               " bytes to rank " + std::to_string(b) + ", which received " +
               std::to_string(with("hocket_received_bytes", b, a));
    }
  }
  double of_kinds = 0;
  for (std::size_t i = 0; i < hocket::call_kinds; ++i) {
    const std::string kind = to_string(static_cast<hocket::call_kind>(i));
    const auto wanted = expected.kinds.contains(kind) ? expected.kinds.at(kind) : expectation::of_kind();
    double bytes = 0;
    for (int r = 0; r < ranks; ++r) {
      bytes += value("hocket_collective_bytes", "collective=\"" + kind, r);
      const double calls = value("hocket_collective_calls", "collective=\"" + kind, r);
      if (calls != static_cast<double>(wanted.calls))
        return "rank " + std::to_string(r) + ": " + std::to_string(calls) + " calls of " + kind + " instead of " +
               std::to_string(wanted.calls);
    }
    if (bytes != static_cast<double>(wanted.bytes))
      return kind + ": " + std::to_string(bytes) + " bytes instead of " + std::to_string(wanted.bytes);
    of_kinds += bytes;
  }
  if (of_kinds != of_peers)
    return std::to_string(of_kinds) + " bytes by collective, but " + std::to_string(of_peers) + " by peer";
  return {};
}

/// The buffers of one call on one rank.
struct buffers {
  std::vector<float> in, out;

  buffers(const hocket::plan::any_algorithm& chosen, int ranks, int rank, std::size_t block) {
    const hocket::plan::layout layout = hocket_test::layout_for(chosen, ranks, block);
    const auto resize = [](std::vector<float>& each, std::size_t size) {
      each.reserve(size + 1);  // empty buffers must not have the same address
      each.resize(size, 1);
    };
    resize(in, hocket_test::input_size(chosen, layout, rank));
    resize(out, hocket_test::held(chosen.collective(), hocket::plan::region::out, layout, rank).size);
  }
};

/// Starts `chosen` on one rank.
template <class Comm>
hocket::request start(const Comm& comm, const hocket::plan::any_algorithm& chosen, buffers& own) {
  using kind = hocket::plan::collective_kind;
  const auto how = hocket::with(hocket::algorithm(chosen));
  const hocket::root root{chosen.collective().root};
  const std::plus<> op;
  auto& [in, out] = own;
  switch (chosen.collective().kind) {
    case kind::all_reduce: return hocket::all_reduce_async(comm, in, out, op, how);
    case kind::reduce_scatter: return hocket::reduce_scatter_async(comm, in, out, op, how);
    case kind::all_gather: return hocket::all_gather_async(comm, in, out, how);
    case kind::all_to_all: return hocket::all_to_all_async(comm, in, out, how);
    case kind::broadcast: return hocket::broadcast_async(comm, out, root, how);
    case kind::reduce: return hocket::reduce_async(comm, in, out, op, root, how);
    case kind::gather: return hocket::gather_async(comm, in, out, root, how);
    case kind::scatter: return hocket::scatter_async(comm, in, out, root, how);
    default: return hocket::barrier_async(comm, how);
  }
}

}  // namespace observe_test
