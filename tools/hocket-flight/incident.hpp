// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An incident: all records of one communicator, which ranks left one, and which rank failed first.
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

/// The call or the message that a rank was in at a given time.
struct position {
  const call* in_call = nullptr;
  const message* in_message = nullptr;

  bool anywhere() const { return in_call != nullptr || in_message != nullptr; }
  int awaits() const { return in_call != nullptr ? in_call->awaits : in_message != nullptr ? in_message->awaits : -1; }
};

class incident {
 public:
  explicit incident(std::vector<const record*> records) : records_(std::move(records)) {
    std::sort(records_.begin(), records_.end(),
              [](auto* a, auto* b) { return a->rank != b->rank ? a->rank < b->rank : a->written > b->written; });
    const auto end = std::unique(records_.begin(), records_.end(), [](auto* a, auto* b) { return a->rank == b->rank; });
    records_.erase(end, records_.end());
    for (const record* each : records_) {
      if (each->failed && (first_ == nullptr || before(*each, *first_))) first_ = each;
    }
  }

  /// The records that exist, sorted by rank.
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

  /// Returns the record of the rank that failed first, as far as the records show; null if none failed.
  const record* first() const { return first_; }
  /// Returns the records of ranks that detected the failure themselves instead of learning of it from another rank.
  std::vector<const record*> finders() const {
    std::vector<const record*> result;
    for (const record* each : records_) {
      if (found_itself(*each)) result.push_back(each);
    }
    if (result.empty() && first_ != nullptr) result.push_back(first_);
    return result;
  }
  /// Time at which a rank first detected the failure.
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

/// Returns the call that `of` was in at `when`: if several were active, the one that failed, otherwise the oldest.
inline position position_of(const record& of, nanoseconds when) {
  const auto is_there = [&](const auto& each) { return !each.over && (!each.begin || *each.begin <= when); };
  position result;
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
using group = std::vector<const record*>;

/// Divides the records of successive communicators with the same number and ranks: a record belongs to the later
/// communicator if it was written after that one was made.
inline std::vector<group> in_time(group records) {
  std::sort(records.begin(), records.end(), [](auto* a, auto* b) { return a->written > b->written; });
  std::vector<group> result;
  nanoseconds made = 0;
  for (const record* each : records) {
    if (result.empty() || each->written < made) {
      result.emplace_back();
      made = each->made;
    }
    result.back().push_back(each);
  }
  return result;
}

inline bool same_process(const record& a, const record& b) { return a.pid == b.pid && a.host == b.host; }
inline bool at_one_time(const record& a, const record& b) { return a.made <= b.written && b.made <= a.written; }

/// Returns whether both incidents belong to one run, judged by processes and times.
inline bool belong_together(const incident& a, const incident& b) {
  for (const record* one : a.records()) {
    for (const record* other : b.records()) {
      if (same_process(*one, *other) || at_one_time(*one, *other)) return true;
    }
  }
  return false;
}

}  // namespace detail

/// Returns one incident for each communicator, sorted by the time of failure. Records of an earlier run in the same
/// directory are ignored, and their paths are added to `ignored`.
inline std::vector<incident> incidents_of(const archive& all, std::vector<std::string>& ignored) {
  std::map<detail::key, detail::group> groups;
  for (const record& each : all.records) groups[{each.communicator, each.members}].push_back(&each);
  std::vector<incident> found;
  for (const auto& [key, group] : groups) {
    for (detail::group& one : detail::in_time(group)) found.emplace_back(std::move(one));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.written() > b.written(); });
  std::vector<incident> result;
  for (const incident& each : found) {
    const bool current = result.empty() || std::any_of(result.begin(), result.end(), [&](const incident& newer) {
                           return detail::belong_together(each, newer);
                         });
    if (current) {
      result.push_back(each);
    } else {
      for (const record* one : each.records()) ignored.push_back(one->path);
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.time() < b.time(); });
  std::sort(ignored.begin(), ignored.end());
  return result;
}

}  // namespace flight
