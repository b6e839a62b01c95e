// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "session.hpp"

#include "figures.hpp"
#include "load.hpp"
#include "report.hpp"
#include "team.hpp"

#include <hocket/selection/select.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>

namespace perf {

namespace {

namespace plan = hocket::plan;

/// Returns the collective for which a plan is selected; none for `send_recv`, which has no plan.
std::optional<plan::collective> collective_of(collective what, int root) {
  switch (what) {
    case collective::all_reduce: return plan::collective{plan::collective_kind::all_reduce};
    case collective::reduce_scatter:
    case collective::reduce_scatter_v: return plan::collective{plan::collective_kind::reduce_scatter};
    case collective::all_gather:
    case collective::all_gather_v: return plan::collective{plan::collective_kind::all_gather};
    case collective::all_to_all:
    case collective::all_to_all_v: return plan::collective{plan::collective_kind::all_to_all};
    case collective::broadcast: return plan::collective{plan::collective_kind::broadcast, root};
    case collective::reduce: return plan::collective{plan::collective_kind::reduce, root};
    case collective::gather:
    case collective::gather_v: return plan::collective{plan::collective_kind::gather, root};
    case collective::scatter:
    case collective::scatter_v: return plan::collective{plan::collective_kind::scatter, root};
    case collective::barrier: return plan::collective{plan::collective_kind::barrier};
    case collective::send_recv: break;
  }
  return std::nullopt;
}

std::optional<plan::any_algorithm> algorithm_of(collective what, const settings& wanted, int ranks) {
  if (wanted.algorithm == "auto") return std::nullopt;
  std::string known = "auto";
  if (const auto kind = collective_of(what, wanted.root)) {
    hocket::selection::query asked;
    asked.what = *kind;
    asked.ranks = ranks;
    for (const auto& each : hocket::selection::table(asked)) {
      const plan::any_algorithm made = each.make(wanted.root);
      if (takes_counts(what) && made.shape(ranks).equal_blocks) continue;
      if (wanted.algorithm == each.name) return made;
      known += std::string(", ") + each.name;
    }
  }
  throw usage_error("--algorithm " + wanted.algorithm + ": " + to_string(what) + " has no such algorithm; use one of " +
                    known);
}

/// One rank's measurement of all requested collectives, types, operations and sizes.
class session {
 public:
  session(any_communicator comm, const settings& wanted)
      : comm_(comm), wanted_(wanted), team_(comm, wanted.pin), report_(team_, wanted) {}

  bool run() {
    report_.begin();
    for (const collective what : wanted_.collectives) {
      report_.begin(what);
      const bool typed = what != collective::barrier;
      for (std::size_t t = 0; t < (typed ? wanted_.types.size() : 1); ++t) {
        for (std::size_t o = 0; o < (reduces(what) ? wanted_.operations.size() : 1); ++o) {
          measure_sizes({what, wanted_.operations[o], wanted_.types[t], wanted_.root, wanted_.shared_memory,
                         wanted_.buffers, wanted_.blocks, algorithm_of(what, wanted_, team_.size())});
        }
      }
    }
    return report_.end(combine(team_.gather(team_.locate(meter_.read()))));
  }

 private:
  void measure_sizes(const subject& what) {
    const auto tried = make_trial(comm_, what);
    const std::size_t element = size_of(what.type);
    std::vector<std::size_t> counts;
    for (const std::size_t bytes : sizes_of(wanted_)) {
      counts.push_back(count_of(what.what, team_.size(), element, bytes));
    }
    // Small sizes may give the same number of elements.
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    reserve(*tried, counts.back(), counts.back() * element * blocks_of(what.what, team_.size()));
    for (const std::size_t count : counts) {
      tried->resize(count);
      if (wanted_.explain) report_.explain(tried->explain());
      row line{.what = what.what,
               .type = what.type,
               .op = what.op,
               .root = has_root(what.what) ? what.root : -1,
               .ranks = team_.size(),
               .count = count,
               .bytes = count * element * blocks_of(what.what, team_.size()),
               .lengths = lengths_of(what, count),
               .out_of_place = {},
               .in_place = {}};
      if (wanted_.out_of_place) line.out_of_place = measure(*tried, placement::out_of_place);
      // A table of OSU Micro-Benchmarks shows one placement.
      const bool enough = wanted_.format == output_format::osu && line.out_of_place;
      if (wanted_.in_place && !enough) line.in_place = measure(*tried, placement::in_place);
      report_.add(std::move(line));
    }
  }

  std::vector<std::size_t> lengths_of(const subject& what, std::size_t count) const {
    if (!takes_counts(what.what)) return {};
    return block_lengths(what.blocks, team_.size(), count * static_cast<std::size_t>(team_.size()));
  }

  void reserve(trial& tried, std::size_t elements, std::size_t bytes) const {
    try {
      tried.reserve(elements);
    } catch (const std::bad_alloc&) {
      throw std::runtime_error(memory_text(team_.size(), bytes));
    }
  }

  std::optional<figures> measure(trial& tried, placement where) {
    if (!tried.has(where)) return std::nullopt;
    figures found;
    std::uint64_t wrong = 0;
    if (wanted_.check) wrong = check(tried, where);
    // An in-place reduction takes its previous result as contribution: zeros stay unchanged.
    const contents timed{.salt = ++salt_, .zeros = !tried.keeps_contribution(where)};
    tried.write(where, timed);
    found.seconds = wanted_.cold ? time_cold(tried, where) : time_warm(tried, where);
    if (wanted_.check) found.wrong = team_.sum(std::max(wrong, tried.count_wrong(where, timed)));
    found.rank_means = team_.gather(mean(found.seconds));
    team_.average(found.seconds, wanted_.average);
    return found;
  }

  std::uint64_t check(trial& tried, placement where) {
    const contents checked{.salt = ++salt_};
    tried.write(where, checked);
    tried.run(where);
    if (team_.rank() == 0) tried.spoil(where, wanted_.corrupt);
    return tried.count_wrong(where, checked);
  }

  /// Measures consecutive calls without a barrier between them, as a program makes them.
  std::vector<double> time_warm(trial& tried, placement where) const {
    std::vector<clock::time_point> ends(static_cast<std::size_t>(wanted_.iterations) + 1);
    for (int i = 0; i < wanted_.warmups; ++i) tried.run(where);
    team_.barrier();
    ends[0] = clock::now();
    for (std::size_t i = 1; i < ends.size(); ++i) {
      tried.run(where);
      ends[i] = clock::now();
    }
    std::vector<double> seconds;
    for (std::size_t i = 1; i < ends.size(); ++i) seconds.push_back(seconds_between(ends[i - 1], ends[i]));
    return seconds;
  }

  /// Measures calls with cold caches. A barrier excludes the time in which other ranks evict their buffers.
  std::vector<double> time_cold(trial& tried, placement where) const {
    std::vector<double> seconds;
    for (int i = -wanted_.warmups; i < wanted_.iterations; ++i) {
      tried.chill();
      team_.barrier();
      const clock::time_point begin = clock::now();
      tried.run(where);
      if (i >= 0) seconds.push_back(seconds_between(begin, clock::now()));
    }
    return seconds;
  }

  static double mean(const std::vector<double>& of) {
    return std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
  }

  using clock = std::chrono::steady_clock;
  static double seconds_between(clock::time_point begin, clock::time_point end) {
    return std::chrono::duration<double>(end - begin).count();
  }

  any_communicator comm_;
  const settings& wanted_;
  team team_;
  report report_;
  usage_meter meter_;
  unsigned salt_ = 0;
};

}  // namespace

void check(const settings& wanted, int ranks) {
  if (wanted.root >= ranks) {
    throw usage_error("--root " + std::to_string(wanted.root) + ": must be one of " + std::to_string(ranks) +
                      " ranks, counted from 0");
  }
  for (const collective what : wanted.collectives) static_cast<void>(algorithm_of(what, wanted, ranks));
}

bool measure(any_communicator comm, const settings& wanted) { return session(comm, wanted).run(); }

}  // namespace perf
