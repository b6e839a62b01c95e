// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/accumulated_step.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/accumulated_step.hpp>
#include <hocket/gradient/communication_time.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/totals.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

HOCKET_DECL accumulated_step::accumulated_step(parameter_layout layout, const accumulation_rules& rules, int rank,
                                               int ranks, const std::source_location& site)
    : layout_(std::move(layout)), rules_(rules), rank_(rank), ranks_(ranks), site_(site),
      share_(layout_, rules.keeps_pieces, rank, ranks), reduced_(layout_, rules.scatters, rank, ranks),
      missing_(layout_.buckets()), is_in_flight_(layout_.buckets(), false), done_(layout_.parameters(), false),
      report_(uses + layout_.parameters()) {}

// ── Microbatches ───────────────────────────────────────────────────────────────────────────────────────────────────

HOCKET_DECL void accumulated_step::begin_microbatch(int index, int microbatches) {
  if (inside_ || index != next_ || microbatches < 1 || index >= microbatches || (index > 0 && microbatches != of_)) {
    refuse(concat({"begin_microbatch(", index, ", ", microbatches, "): ",
                   inside_ ? concat({"microbatch ", next_ - 1, " has not ended: call end_microbatch first"})
                   : next_ == 0
                       ? std::string("a step must begin with microbatch 0 and have at least one")
                       : concat({"this step has begun ", next_, " of ", of_, " microbatches",
                                 next_ == of_ ? ": call finish" : ": pass the next index and the same number"})}));
  }
  if (index == 0) begin_step(microbatches);
  inside_ = true;
  ++next_;
  to_launch_ = 0;
  std::fill(done_.begin(), done_.end(), false);
  for (std::size_t b = 0; b < missing_.size(); ++b) missing_[b] = layout_.members(b).size();
}

HOCKET_DECL void accumulated_step::begin_step(int microbatches) {
  totals_ = {};
  wait_for_all();  // buckets may be in flight if no optimizer step followed `finish_counts`
  of_ = microbatches;
  finished_ = used_ = false;
  std::fill(report_.begin(), report_.end(), 0.0);
  clear_sums();
}

HOCKET_DECL void accumulated_step::ready(std::size_t i) {
  record_use(i, "ready");
  complete(i);
  progress();
}

HOCKET_DECL void accumulated_step::end_microbatch(double loss, double count) {
  if (!inside_) refuse("end_microbatch: no microbatch has begun");
  for (std::size_t b = 0; b < layout_.buckets(); ++b) {
    for (const std::size_t i : layout_.members(b)) {
      if (!done_[i]) complete(i);
    }
  }
  inside_ = false;
  report_[losses] += loss;
  report_[counts_of_losses] += count;
  progress();
}

// ── Buckets ────────────────────────────────────────────────────────────────────────────────────────────────────────

HOCKET_DECL void accumulated_step::complete(std::size_t i) {
  done_[i] = true;
  --missing_[layout_.bucket_of(i)];
  if (rules_.keeps_whole && next_ != of_) return;
  while (to_launch_ < layout_.buckets() && missing_[layout_.bucket_sent_at(to_launch_)] == 0) {
    launch(layout_.bucket_sent_at(to_launch_++));
  }
}

HOCKET_DECL void accumulated_step::launch(std::size_t b) {
  allocate_microbatch_gradient(b);  // may wait, which counts as exposed time
  const stopwatch watch(totals_.driving_seconds);
  is_in_flight_[b] = true;
  const bool continues_across = rules_.has_replicas && (!rules_.scatters_before_adding || next_ == of_);
  in_flight_.launch_within(b, continues_across, begun(b, false));
}

/// Starts a reduction. If that throws, revokes the communicators with the reason, because peers wait for this rank.
HOCKET_DECL request accumulated_step::begun(std::size_t b, bool across) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    return across ? begin_across(b) : begin_within(b);
  } catch (const std::exception& thrown) {
    revoke_unbegun(b, thrown.what());
    throw;
  } catch (...) {
    revoke_unbegun(b, "an exception that is not a std::exception");
    throw;
  }
#else
  return across ? begin_across(b) : begin_within(b);
#endif
}

HOCKET_DECL void accumulated_step::revoke_unbegun(std::size_t b, const char* thrown) const {
  revoke(concat({"the reduction of bucket ", b, " did not begin: ", thrown}));
}

/// Handles a completed sum over the ranks of one copy, or over replicas if `across`.
HOCKET_DECL void accumulated_step::handle_completed(std::size_t b, bool across, bool continues_across) {
  const bool is_within = rules_.has_replicas && !across;
  if (is_within == rules_.scatters_before_adding) add_to_sums(b);  // before replicas are summed, or after
  if (is_within && continues_across) {
    in_flight_.launch_across(b, begun(b, true));
  } else {
    is_in_flight_[b] = false;
  }
}

HOCKET_DECL void accumulated_step::progress() {
  const stopwatch watch(totals_.driving_seconds);
  in_flight_.move_on(
      [this](std::size_t b, bool across, bool continues_across) { handle_completed(b, across, continues_across); });
}

HOCKET_DECL void accumulated_step::wait_for_one() {
  in_flight_.wait_for_one(timeout(), [this](std::size_t b, bool across, bool continues_across) {
    handle_completed(b, across, continues_across);
  });
}

HOCKET_DECL void accumulated_step::wait_for_all() {
  const stopwatch watch(totals_.exposed_seconds);
  while (in_flight_.size() > 0) wait_for_one();
}

HOCKET_DECL void accumulated_step::wait(std::size_t b) {
  if (!is_in_flight_[b]) return;
  const stopwatch watch(totals_.exposed_seconds);
  while (is_in_flight_[b]) wait_for_one();
}

HOCKET_DECL void accumulated_step::wait_for_room(std::size_t b, bool has_memory) {
  const std::size_t most = layout_.limits().in_flight;
  if (!is_in_flight_[b] && (has_memory || in_flight_.size() <= most)) return;
  const stopwatch watch(totals_.exposed_seconds);
  while (is_in_flight_[b] || in_flight_.size() > most) wait_for_one();
}

// ── The end of a step ──────────────────────────────────────────────────────────────────────────────────────────────

HOCKET_DECL gradient_totals accumulated_step::finish() {
  check_complete("finish");
  wait_for_all();
  return finish_counts();
}

HOCKET_DECL gradient_totals accumulated_step::finish_counts() {
  check_complete("finish");
  // All ranks must use the replicas' communicator in one order: first the buckets, then the report.
  if (rules_.has_replicas || rules_.gathers()) wait_for_all();
  if (rules_.gathers()) gather();
  {
    const stopwatch watch(totals_.exposed_seconds);
    sum_over_ranks(report_);
  }
  next_ = 0;
  finished_ = true;
  totals_.loss = report_[losses];
  totals_.count = report_[counts_of_losses];
  totals_.abandoned = static_cast<int>(report_[abandoned_ranks]);
  return totals_;
}

HOCKET_DECL void accumulated_step::gather() {
  const stopwatch watch(totals_.exposed_seconds);
  std::vector<request> started;
  for (std::size_t b = 0; b < layout_.buckets(); ++b) started.push_back(begin_gather(b));
  for (request& each : started) each.wait();
}

HOCKET_DECL gradient_totals accumulated_step::abandon() {
  if (next_ == 0) {
    finished_ = false;
    return {};
  }
  report_[abandoned_ranks] = 1;
  while (inside_ || next_ != of_) {
    if (!inside_) begin_microbatch(next_, of_);
    end_microbatch(0, 0);
  }
  return finish();
}

HOCKET_DECL gradient_totals accumulated_step::abandon(int microbatches) {
  if (next_ == 0) begin_microbatch(0, microbatches);
  if (microbatches != of_) {
    refuse(concat({"abandon(", microbatches, "): this step has ", of_, " microbatches"}));
  }
  return abandon();
}

HOCKET_DECL void accumulated_step::use() {
  check_finished("step");
  if (abandoned()) {
    refuse(concat({"step: ", totals_.abandoned,
                   " ranks abandoned this step, so there is no gradient: skip the step if norm(...).finite is false"}));
  }
  if (std::exchange(used_, true)) refuse("step: this gradient was already used: accumulate a new one first");
}

// ── Refusals ───────────────────────────────────────────────────────────────────────────────────────────────────────

HOCKET_DECL void accumulated_step::refuse(std::string reason) const {
  raise(errc::invalid_argument, std::move(reason),
        {.operation = "gradients", .rank = rank_, .ranks = ranks_, .site = site_});
}

HOCKET_DECL void accumulated_step::refuse_size(std::size_t i, std::size_t given) const {
  refuse(concat(
      {"add: parameter '", layout_[i].name, "' has ", layout_.of(i).size, " elements, but its gradient has ", given}));
}

HOCKET_DECL void accumulated_step::refuse_closed(std::size_t i, const char* call) const {
  const std::string name = concat({call, "(", i, "): "});
  if (i >= layout_.parameters()) {
    refuse(concat({name, "there are ", layout_.parameters(), " parameters, numbered from 0"}));
  }
  if (!inside_) refuse(name + "no microbatch has begun: call begin_microbatch first");
  refuse(concat({name, "parameter '", layout_[i].name, "' is already ready in microbatch ", next_ - 1,
                 ", and its gradient may be in flight: call ready once per microbatch, after the last addition"}));
}

HOCKET_DECL void accumulated_step::check_finished(const char* call) const {
  if (!finished_) refuse(std::string(call) + ": the step's sums are not available yet: call finish first");
}

HOCKET_DECL void accumulated_step::check_complete(const char* call) const {
  if (!inside_ && next_ != 0 && next_ == of_) return;
  refuse(concat({call, ": ",
                 inside_      ? std::string("a microbatch has not ended: call end_microbatch first")
                 : next_ == 0 ? std::string("no microbatch has begun")
                              : concat({"only ", next_, " of ", of_, " microbatches are done"})}));
}

}  // namespace detail
HOCKET_END_NAMESPACE
