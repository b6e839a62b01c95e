// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// All records of one communicator, put together: who has left one, who failed first, and who waited for whom.
#pragma once

#include "record.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace flight {

/// What a rank was in when it wrote its record.
struct standing {
  const call* in_call = nullptr;
  const message* in_message = nullptr;

  bool anywhere() const { return in_call != nullptr || in_message != nullptr; }
  int awaits() const { return in_call != nullptr ? in_call->awaits : in_message != nullptr ? in_message->awaits : -1; }
};

class incident {
 public:
  explicit incident(std::vector<const record*> records) : records_(std::move(records)) {
    std::sort(records_.begin(), records_.end(), [](auto* a, auto* b) { return a->rank < b->rank; });
    for (const record* each : records_) {
      if (each->failed && (first_ == nullptr || before(*each, *first_))) first_ = each;
    }
  }

  /// By rank, those that there are.
  const std::vector<const record*>& records() const { return records_; }
  int ranks() const { return records_.front()->ranks; }
  const record* of(int rank) const {
    const auto found = std::find_if(records_.begin(), records_.end(), [&](auto* each) { return each->rank == rank; });
    return found == records_.end() ? nullptr : *found;
  }
  std::vector<int> missing() const {
    std::vector<int> result;
    for (int rank = 0; rank < ranks(); ++rank) {
      if (of(rank) == nullptr) result.push_back(rank);
    }
    return result;
  }

  /// The record of the rank that failed first, as far as is known; null if nothing failed.
  const record* first() const { return first_; }
  /// Of those that have found out by themselves what they failed with, and were not told.
  std::vector<const record*> finders() const {
    std::vector<const record*> result;
    for (const record* each : records_) {
      if (found_itself(*each)) result.push_back(each);
    }
    if (result.empty() && first_ != nullptr) result.push_back(first_);
    return result;
  }
  /// When it was known for the first time that something had failed.
  nanoseconds time() const { return first_ != nullptr ? first_->failed->time : records_.front()->written; }
  nanoseconds written() const {
    nanoseconds last = 0;
    for (const record* each : records_) last = std::max(last, each->written);
    return last;
  }

 private:
  static bool found_itself(const record& each) { return each.failed && each.failed->first_on == each.rank; }

  static bool before(const record& a, const record& b) {
    if (found_itself(a) != found_itself(b)) return found_itself(a);
    return a.failed->time < b.failed->time;
  }

  std::vector<const record*> records_;
  const record* first_ = nullptr;
};

/// The call that `of` was in at a time; of several that were under way, the one that it failed in, else the oldest.
inline standing standing_of(const record& of, nanoseconds when) {
  const auto is_there = [&](const auto& each) { return !each.over && (!each.begin || *each.begin <= when); };
  standing result;
  const std::int64_t failed_in = of.failed ? of.failed->sequence : 0;
  for (const call& each : of.calls) {
    if (!is_there(each)) continue;
    if (result.in_call == nullptr || each.covers(failed_in)) result.in_call = &each;
  }
  const bool in_a_message = of.failed && failed_in == 0 && !of.failed->on_leaving;
  for (const message& each : of.messages) {
    if (is_there(each) && (result.in_call == nullptr || in_a_message)) result = {nullptr, &each};
  }
  return result;
}

inline const call* call_of(const record& of, std::int64_t sequence) {
  for (const call& each : of.calls) {
    if (each.covers(sequence)) return &each;
  }
  return nullptr;
}

namespace detail {

using key = std::pair<std::int64_t, std::vector<int>>;

inline bool another_process(const record& a, const record& b) {
  return a.world_rank == b.world_rank && (a.pid != b.pid || a.host != b.host);
}

/// A rank of `older` was another process when `newer` was written: they are of two runs.
inline bool of_an_earlier_run(const std::vector<const record*>& older, const std::vector<const record*>& newer) {
  for (const record* a : older) {
    for (const record* b : newer) {
      if (a->written < b->written && another_process(*a, *b)) return true;
    }
  }
  return false;
}

}  // namespace detail

/// One incident for each communicator, in the order in which they failed. Records of an earlier run in the same directory
/// are left out, and named in `ignored`.
inline std::vector<incident> incidents_of(const archive& all, std::vector<std::string>& ignored) {
  std::map<detail::key, std::vector<const record*>> groups;
  for (const record& each : all.records) groups[{each.communicator, each.members}].push_back(&each);
  std::vector<std::vector<const record*>> kept;
  for (auto& [key, group] : groups) {
    const auto newest =
        std::max_element(group.begin(), group.end(), [](auto* a, auto* b) { return a->written < b->written; });
    const nanoseconds made = (*newest)->made;
    std::vector<const record*> current;
    for (const record* each : group) each->written < made ? ignored.push_back(each->path) : current.push_back(each);
    kept.push_back(std::move(current));
  }
  std::vector<incident> result;
  for (const auto& group : kept) {
    const bool old = std::any_of(kept.begin(), kept.end(),
                                 [&](const auto& other) { return detail::of_an_earlier_run(group, other); });
    if (!old) {
      result.emplace_back(group);
    } else {
      for (const record* each : group) ignored.push_back(each->path);
    }
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const incident& a, const incident& b) { return a.time() < b.time(); });
  std::sort(ignored.begin(), ignored.end());
  return result;
}

}  // namespace flight
