// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Prints, draws, proves and prices pipeline schedules, named ones or those in a file, and compares them in one table.
#pragma once

#include "files.hpp"
#include "limits.hpp"
#include "note.hpp"

#include <hocket/core/error.hpp>
#include <hocket/draw/schedule_svg.hpp>
#include <hocket/draw/schedule_text.hpp>
#include <hocket/schedule/greedy.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/messages.hpp>
#include <hocket/schedule/prove.hpp>
#include <hocket/schedule/prove_messages.hpp>
#include <hocket/schedule/schedule_trace.hpp>
#include <hocket/schedule/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace plans {

namespace pipeline = hocket::plan::pipeline;

/// The options of all pipeline commands.
struct pipeline_request {
  std::string name;  ///< a generator or a file
  int ranks = 4;
  int microbatches = 8;
  int stages_per_rank = 2;
  int group = 0;
  std::array<double, 3> times{1, 1, 1};  ///< forward, input gradient, weight gradient of a full stage
  std::vector<double> hops{0};  ///< one time for all links, or one per rank: to the next rank, from the last to rank 0
  double most_activations = 0;  ///< per rank, in microbatches of its whole share of the model; 0: no limit
  std::string unit;
  bool print = false;
  bool draw = false;
  std::string lower;  ///< the requested passes, separated by commas; empty: none
  bool recompute = false;
  std::string svg;
  std::vector<std::string> given;  ///< the given options that only some schedules take
};

/// A schedule, and the number of stages into which a rank's share of the model is cut.
struct cut_schedule {
  pipeline::schedule plan;
  int chunks;
};

struct generator {
  const char* name;
  std::vector<std::string> takes;  ///< options, beside the numbers of ranks and microbatches
  std::function<cut_schedule(const pipeline_request&)> make;
  bool searches = false;  ///< true: chooses itself which activations to recompute, if allowed
};

/// Returns the requested link times. Messages between ranks that are not neighbours pass through the ranks between
/// them, in the shorter direction around the ring.
inline pipeline::link_times links_of(const pipeline_request& wanted) {
  if (wanted.hops.size() == 1) return wanted.hops[0];
  const std::size_t ranks = wanted.hops.size();
  std::vector<std::vector<double>> times(ranks, std::vector<double>(ranks));
  double round = 0;
  for (const double hop : wanted.hops) round += hop;
  for (std::size_t from = 0; from < ranks; ++from) {
    double way = 0;
    for (std::size_t to = from + 1; to < ranks; ++to) {
      way += wanted.hops[to - 1];
      times[from][to] = times[to][from] = std::min(way, round - way);
    }
  }
  return pipeline::link_times(times);
}

/// Returns costs in which a rank's share of the model takes the requested times, and a stage 1/`chunks` of them.
inline pipeline::costs costs_of(const pipeline_request& wanted, int chunks) {
  return pipeline::costs(
      pipeline::stage_cost{wanted.times[0] / chunks, wanted.times[1] / chunks, wanted.times[2] / chunks},
      links_of(wanted));
}

/// Returns the memory limit in activations of a stage, if a rank's share is cut into `chunks` stages.
inline int most_held(const pipeline_request& wanted, int chunks) {
  return static_cast<int>(std::min(wanted.most_activations * chunks + 1e-9, 1e9));
}

inline cut_schedule search(const pipeline_request& wanted, const pipeline::placement& where) {
  const int chunks = where.stages() / where.ranks();
  std::vector<int> caps;
  if (wanted.most_activations > 0) caps.assign(static_cast<std::size_t>(wanted.ranks), most_held(wanted, chunks));
  const auto again = wanted.recompute ? pipeline::recomputation::where_shorter : pipeline::recomputation::none;
  return {pipeline::greedy(where, wanted.microbatches, costs_of(wanted, chunks), caps, again).plan, chunks};
}

inline const std::vector<generator>& generators() {
  using wish = const pipeline_request&;
  static const std::vector<generator> all{
      {"gpipe",
       {},
       [](wish w) {
         return cut_schedule{pipeline::gpipe(w.ranks, w.microbatches), 1};
       }},
      {"one_forward_one_backward",
       {},
       [](wish w) {
         return cut_schedule{pipeline::one_forward_one_backward(w.ranks, w.microbatches), 1};
       }},
      {"breadth_first",
       {"-v"},
       [](wish w) {
         return cut_schedule{pipeline::breadth_first(w.ranks, w.microbatches, w.stages_per_rank), w.stages_per_rank};
       }},
      {"interleaved",
       {"-v", "--group"},
       [](wish w) {
         return cut_schedule{pipeline::interleaved(w.ranks, w.microbatches, w.stages_per_rank, w.group),
                             w.stages_per_rank};
       }},
      {"zero_bubble",
       {},
       [](wish w) {
         return cut_schedule{pipeline::zero_bubble(w.ranks, w.microbatches), 1};
       }},
      {"interleaved_zero_bubble",
       {"-v", "--group"},
       [](wish w) {
         return cut_schedule{pipeline::interleaved_zero_bubble(w.ranks, w.microbatches, w.stages_per_rank, w.group),
                             w.stages_per_rank};
       }},
      {"zero_bubble_v",
       {},
       [](wish w) {
         return cut_schedule{pipeline::zero_bubble_v(w.ranks, w.microbatches), 2};
       }},
      {"v_half",
       {},
       [](wish w) {
         return cut_schedule{pipeline::v_half(w.ranks, w.microbatches), 2};
       }},
      {"v_min",
       {},
       [](wish w) {
         return cut_schedule{pipeline::v_min(w.ranks, w.microbatches), 2};
       }},
      {"dual_pipe_v",
       {},
       [](wish w) {
         return cut_schedule{pipeline::dual_pipe_v(w.ranks, w.microbatches), 2};
       }},
      {"dual_pipe",
       {},
       [](wish w) {
         return cut_schedule{pipeline::dual_pipe(w.ranks, w.microbatches), 1};
       }},
      {"greedy_loop",
       {"-v", "--most-activations"},
       [](wish w) { return search(w, pipeline::placement::loop(w.ranks, w.stages_per_rank)); },
       true},
      {"greedy_v",
       {"--most-activations"},
       [](wish w) { return search(w, pipeline::placement::v_shape(w.ranks)); },
       true}};
  return all;
}

inline cut_schedule as_wanted(cut_schedule made, const pipeline_request& wanted) {
  if (wanted.recompute) made.plan = pipeline::recompute_activations(std::move(made.plan));
  return made;
}

inline cut_schedule make(const generator& from, const pipeline_request& wanted) {
  return from.searches ? from.make(wanted) : as_wanted(from.make(wanted), wanted);
}

/// Rejects options that would have no effect, because the user expects one.
inline void refuse_ignored(const pipeline_request& wanted, const std::vector<std::string>& takes,
                           const std::string& reason) {
  for (const std::string& option : wanted.given) {
    if (std::find(takes.begin(), takes.end(), option) != takes.end()) continue;
    throw usage_error(option + " would have no effect: " + reason);
  }
}

/// Throws if no schedule can be made or priced with these options.
inline void require_sense(const pipeline_request& wanted) {
  const auto ranks = static_cast<std::uint64_t>(wanted.ranks);
  const auto microbatches = static_cast<std::uint64_t>(wanted.microbatches);
  const auto stages = static_cast<std::uint64_t>(wanted.stages_per_rank);
  if (ranks * stages > most_pipeline_number || ranks * stages * microbatches > most_pipeline_tasks) {
    throw usage_error("--ranks times --stages-per-rank must be at most " + std::to_string(most_pipeline_number) +
                      ", and at most " + std::to_string(most_pipeline_tasks) + " if multiplied by --microbatches");
  }
  costs_of(wanted, 1);
  if (!(wanted.most_activations >= 0)) throw usage_error("--most-activations must be a number of at least 0");
}

/// Returns the largest number of activations that any rank holds.
inline int peak_of(const pipeline::schedule& plan) {
  int most = 0;
  for (int rank = 0; rank < plan.ranks(); ++rank) most = std::max(most, pipeline::peak_activations(plan, rank));
  return most;
}

/// Formats `value` with at most three decimals.
inline std::string number(double value) { return hocket::plan::detail::decimal(value, 3); }

inline std::string time(double value, const pipeline_request& wanted) {
  return number(value) + (wanted.unit.empty() ? "" : " ") + wanted.unit;
}

inline cut_schedule find(const pipeline_request& wanted) {
  for (const generator& each : generators()) {
    if (wanted.name != each.name) continue;
    std::vector<std::string> takes = each.takes;
    takes.insert(takes.end(), {"-P", "-M"});
    refuse_ignored(wanted, takes, "this option is not used by " + wanted.name);
    return make(each, wanted);
  }
  if (wanted.name.find_first_of("./-") == std::string::npos) {
    throw usage_error(
        "there is no schedule '" + wanted.name +
        "'; `hocket-plan list` shows all names; the name of a file must contain a dot or a slash, or be -");
  }
  refuse_ignored(wanted, {}, "the table of actions determines the sizes");
  pipeline::schedule plan = pipeline::parse(read_file(wanted.name));
  const int chunks = std::max(1, plan.stages() / plan.ranks());
  return as_wanted({std::move(plan), chunks}, wanted);
}

/// Parses the argument of `--lower`, passes separated by commas. The executor always runs the pass "messages".
inline pipeline::lowering passes_of(const std::string& names) {
  pipeline::lowering passes;
  std::istringstream rest(names);
  for (std::string name; std::getline(rest, name, ',');) {
    if (name == "messages") continue;
    if (name == "merge") passes.merge_backward = true;
    else if (name == "recompute") passes.recompute_activations = true;
    else if (name == "shard") passes.shard_parameters = true;
    else if (name == "reduce") passes.reduce_gradients = true;
    else if (name == "update") passes.update_parameters = true;
    else if (name == "defer") passes.defer_receives = true;
    else {
      throw usage_error(
          "there is no pass '" + name +
          "'; --lower= takes messages, merge, recompute, shard, reduce, update and defer, separated by commas");
    }
  }
  return passes;
}

inline std::size_t actions_of(const pipeline::schedule& plan) {
  std::size_t count = 0;
  for (const pipeline::row& each : plan.rows) count += each.size();
  return count;
}

/// Returns the approximate number of actions of a schedule for these sizes.
inline std::size_t actions_of(const pipeline_request& wanted) {
  return std::size_t{3} * static_cast<std::size_t>(wanted.ranks) * static_cast<std::size_t>(wanted.microbatches);
}

/// Returns the result of `work`, and shows a note while it runs if there are many actions.
template <class Work>
auto noted(const std::string& what, std::size_t actions, Work work) {
  const note shown(what, actions);
  return work();
}

/// Returns whether the proof of the messages succeeds in hocket's executor, which starts sends and waits later. Also
/// shows the proof for transports whose sends and receives block.
inline bool show_messages(const pipeline::schedule& lowered) {
  const auto prove = [&](const char* where, int capacity) {
    return noted(std::string("proving messages ") + where, actions_of(lowered),
                 [&] { return pipeline::prove_messages(lowered, capacity); });
  };
  const pipeline::schedule_proof unbounded = prove("in hocket's executor", pipeline::unbounded);
  const pipeline::schedule_proof rendezvous = prove("that block", 0);
  std::cout << "  messages, in hocket's executor: " << unbounded.message() << '\n'
            << "  messages, where sends and receives block: " << rendezvous.message() << '\n';
  return unbounded.ok;
}

/// Shows the requested outputs. Returns true if the proofs of the schedule succeed.
inline bool show_pipeline(const pipeline_request& wanted) {
  require_sense(wanted);
  const pipeline::lowering passes = passes_of(wanted.lower);
  const cut_schedule cut = noted("making " + wanted.name, actions_of(wanted), [&] { return find(wanted); });
  const auto& [plan, chunks] = cut;
  const pipeline::costs cost = costs_of(wanted, chunks);
  cost.require_sizes(plan.stages(), plan.ranks());
  const bool has_messages = pipeline::has_messages(plan);
  if (has_messages && !wanted.lower.empty()) throw usage_error("this schedule contains messages already: omit --lower");
  const std::size_t actions = actions_of(plan);
  const pipeline::schedule_proof complete = noted("proving", actions, [&] { return pipeline::prove(cut.plan); });
  std::cout << plan.name() << ": " << plan.ranks() << " ranks, " << plan.stages() << " stages, " << plan.microbatches
            << " microbatches\n"
            << "  proof: " << complete.message() << '\n';
  if (!complete) {
    if (wanted.print) std::cout << '\n' << pipeline::print(plan);
    return false;
  }
  const pipeline::timing found = noted("pricing", actions, [&] { return pipeline::run_clock(cut.plan, cost); });
  std::cout << "  makespan " << time(found.makespan, wanted) << ", ranks idle for "
            << number(100 * found.bubble_share()) << " % of it, at most " << peak_of(plan)
            << " activations of a stage on a rank\n";

  std::ostringstream steps;
  const auto report = [&](const char* pass, const pipeline::schedule& made) {
    if (wanted.lower.empty()) return;
    steps << "\nafter " << pass;
    if (!pipeline::has_messages(made)) {
      steps << ", makespan " << time(pipeline::run_clock(made, cost).makespan, wanted);
    }
    steps << ":\n" << pipeline::print(made);
  };
  const auto lower = [&] { return has_messages ? cut.plan : pipeline::lower(cut.plan, passes, report); };
  const bool holds = show_messages(noted("adding messages", actions, lower));
  std::cout << steps.str();
  if (wanted.print) std::cout << '\n' << pipeline::print(plan);
  if (wanted.draw) std::cout << '\n' << pipeline::draw_text(plan, cost);
  if (!wanted.svg.empty()) write_file(wanted.svg, pipeline::draw_svg(plan, cost, {.unit = wanted.unit}));
  return holds;
}

/// Prints one line per schedule, the shortest first, then why the other schedules do not support these sizes.
inline void compare_pipelines(const pipeline_request& wanted) {
  require_sense(wanted);
  links_of(wanted).require_ranks(wanted.ranks);
  struct line {
    std::string name;
    double makespan;
    double idle;
    double memory;
    bool fits;
  };
  std::vector<line> lines;
  std::vector<std::string> refused;
  for (const generator& each : generators()) {
    try {
      const auto [plan, chunks] =
          noted("making " + std::string(each.name), actions_of(wanted), [&] { return make(each, wanted); });
      const pipeline::timing found = pipeline::run_clock(plan, costs_of(wanted, chunks));
      const int peak = peak_of(plan);
      std::string name = each.name;
      if (name.rfind("greedy", 0) == 0 && plan.name() != "greedy") name += " (" + std::string(plan.name()) + ")";
      lines.push_back({name, found.makespan, 100 * found.bubble_share(), static_cast<double>(peak) / chunks,
                       wanted.most_activations == 0 || peak <= most_held(wanted, chunks)});
    } catch (const hocket::error& problem) {
      refused.push_back(std::string(each.name) + ": " + problem.reason());
    }
  }
  std::stable_sort(lines.begin(), lines.end(), [](const line& a, const line& b) { return a.makespan < b.makespan; });
  std::size_t width = 8;
  for (const line& each : lines) width = std::max(width, each.name.size());
  const auto cell = [](const std::string& text, std::size_t columns) {
    return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
  };
  std::string hops;
  for (const double each : wanted.hops) hops += (hops.empty() ? "" : ", ") + number(each);
  std::cout << wanted.ranks << " ranks, " << wanted.microbatches << " microbatches, " << wanted.stages_per_rank
            << " stages per rank if variable; forward, input and weight gradient " << number(wanted.times[0]) << ", "
            << number(wanted.times[1]) << ", " << number(wanted.times[2]) << " per rank's share of the model, hop "
            << hops << (wanted.unit.empty() ? "" : " ") << wanted.unit << "\n\n"
            << "schedule" << std::string(width - 8, ' ') << cell("makespan", 12) << cell("idle %", 10)
            << cell("activations", 13) << '\n';
  for (const line& each : lines) {
    std::cout << each.name << std::string(width - each.name.size(), ' ') << cell(number(each.makespan), 12)
              << cell(hocket::plan::detail::decimal(each.idle, 1), 10)
              << cell(hocket::plan::detail::decimal(each.memory, 2), 13) << (each.fits ? "" : "  more than allowed")
              << '\n';
  }
  std::cout << "\nactivations: the maximum that a rank holds, in microbatches of its whole share of the model\n";
  for (const std::string& each : refused) std::cout << "not available: " << each << '\n';
}

}  // namespace plans
