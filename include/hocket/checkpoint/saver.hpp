// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Saves a state over the ranks of a group: who writes what, each rank's file, and the manifest that makes it valid.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/outcome.hpp>
#include <hocket/checkpoint/rank_group.hpp>
#include <hocket/checkpoint/shard_writer.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/checkpoint/write_plan.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {
namespace detail {

/// What a rank writes in one save.
struct assignment {
  position at;
  std::vector<written_range> ranges;
};

/// Functions are collective, and return the same failure on all ranks.
class saver {
 public:
  saver(platform::file_system& files, folder& in, rank_group& ranks, const retention& keep)
      : files_(files), folder_(in), ranks_(&ranks), keep_(keep) {}

  /// Makes the folder of all checkpoints, and locks it.
  failure lock() {
    failure cause;
    if (is_first()) cause = outcome_of([&] { return lock_folder(); });
    return agreed(*ranks_, cause);
  }

  /// Makes a folder, and decides what each rank writes. The plan of the last save is used again if no rank's parts have
  /// changed.
  failure begin(std::uint64_t step, const state& what, assignment& result) {
    bootstrap::blob parts = encode_parts(what.parts());
    const std::uint64_t own_text = hash_of(what.text);
    bootstrap::blob mine;
    bootstrap::detail::append_integer(mine, static_cast<std::uint8_t>(parts != planned_parts_));
    bootstrap::detail::append_integer(mine, own_text);
    const auto all = ranks_->gather(mine);
    bool must_plan = false;
    failure cause;
    for (std::size_t r = 0; r < all.size(); ++r) {
      bootstrap::detail::blob_reader reader(all[r]);
      must_plan = (reader.integer<std::uint8_t>() != 0) || must_plan;
      if (reader.integer<std::uint64_t>() != own_text && !cause)
        cause = make_failure(
            errc::mismatch,
            hocket::detail::concat({"rank ", r, " has other texts than rank 0: they must be equal on all ranks"}));
    }
    if (!cause && is_first()) cause = problem_with_text(what.text);
    if (is_first()) end_removal();
    if (!cause && is_first()) cause = outcome_of([&] { return begin_folder(step, result.at); });
    bootstrap::blob decided = encode_outcome(cause);
    bootstrap::detail::append_integer(decided, static_cast<std::uint8_t>(must_plan));
    for (const std::uint64_t each : {result.at.epoch, result.at.step, result.at.attempt})
      bootstrap::detail::append_integer(decided, each);
    bootstrap::detail::append_bytes(decided, bootstrap::text_bytes(self_text()));
    decided = ranks_->broadcast(decided);
    bootstrap::detail::blob_reader reader(decided);
    if (failure first = decode_outcome(reader)) return first;
    must_plan = reader.integer<std::uint8_t>() != 0;
    for (std::uint64_t* const each : {&result.at.epoch, &result.at.step, &result.at.attempt})
      *each = reader.integer<std::uint64_t>();
    first_text_ = reader.rest_as_text();
    if (must_plan) {
      if (failure first = plan(parts)) {
        if (is_first()) folder_.abandon(result.at);
        return first;
      }
      planned_parts_ = std::move(parts);
    }
    result.ranges = planned_ranges_;
    return {};
  }

  /// Writes this rank's file, and makes the checkpoint valid. Exchanges reports over `ranks`, which no other thread
  /// uses. A rank that has failed `before` writes nothing, and reports that, because the others wait for its report.
  failure write(rank_group& ranks, const position& at, const std::vector<source_part>& parts,
                const std::map<std::string, std::string>& text, write_rate rate, const failure& before) {
    manifest mine;
    failure cause = outcome_of([&]() -> failure {
      if (before) return before;
      if (parts.empty()) return {};
      if (!folder_.has(at)) return not_shared(at);
      const std::string name = hocket::detail::concat({"shard-", ranks.rank(), "-of-", ranks.size(), ".safetensors"});
      if (failure first = write_shard(files_, folder_.path_of(at), name, parts, rate, buffers_, mine)) return first;
      return folder_.sync_entries(at);
    });
    bootstrap::blob report = encode_outcome(cause);
    bootstrap::detail::append_bytes(report, encode_report(mine));
    const auto reports = ranks.gather(report);
    cause = {};
    if (is_first()) cause = outcome_of([&] { return commit(at, text, reports); });
    if (is_first() && cause) folder_.abandon(at);  // all ranks have reported, so none writes any more
    return agreed(ranks, cause);
  }

  /// Returns why old checkpoints, or what saves that have failed have left, could not be removed: on rank 0. Waits
  /// until the removal has ended.
  const std::vector<std::string>& not_removed() {
    end_removal();
    return not_removed_;
  }

 private:
  bool is_first() const noexcept { return ranks_->rank() == 0; }

  /// Waits until the files of the checkpoints that the save before has retired are removed. What remains is no failure
  /// of the next save: `not_removed` states it.
  void end_removal() {
    if (removing_.valid()) not_removed_ = removing_.get();
  }

  /// Returns what can't be removed, each with the reason. Throws nothing, because it runs on a thread of its own.
  std::vector<std::string> remove_invalid() {
    std::vector<std::string> remaining;
    const failure cause = outcome_of([&] { return folder_.remove_invalid(remaining); });
    if (cause) remaining.push_back(cause.reason);
    return remaining;
  }

  static std::uint64_t hash_of(const std::map<std::string, std::string>& text) {
    bootstrap::blob all;
    for (const auto& [key, value] : text) {
      for (const std::string* const each : {&key, &value}) {
        bootstrap::detail::append_integer(all, std::uint64_t{each->size()});
        bootstrap::detail::append_bytes(all, bootstrap::text_bytes(*each));
      }
    }
    return hocket::detail::checksum(all);
  }

  failure lock_folder() {
    return folder_.lock(
        hocket::detail::concat({"process ", platform::process_number(), " on host ", platform::host_name()}));
  }
  failure begin_folder(std::uint64_t step, position& result) {
    failure cause = lock_folder();
    return cause ? cause : folder_.begin(step, result);
  }

  failure not_shared(const position& at) const {
    return make_failure(
        errc::system,
        hocket::detail::concat({first_text_, " has made the folder '", folder_.path_of(at), "', but ", self_text(),
                                " does not find it: the folder of ", "checkpoints must be one that all hosts share"}));
  }

  static failure problem_with_text(const std::map<std::string, std::string>& text) {
    for (const auto& [key, value] : text) {
      if (hocket::detail::is_utf8(key) && hocket::detail::is_utf8(value)) continue;
      return make_failure(errc::invalid_argument,
                          hocket::detail::concat({"the text '", hocket::detail::to_utf8(key),
                                                  "' of the state, or its name, is not UTF-8"}));
    }
    return {};
  }

  failure plan(const bootstrap::blob& parts) {
    const auto all = ranks_->gather(parts);
    std::vector<bootstrap::blob> answers(is_first() ? static_cast<std::size_t>(ranks_->size()) : 0);
    if (is_first()) {
      std::vector<std::vector<state_part>> of_ranks;
      for (const auto& each : all) of_ranks.push_back(decode_parts(each));
      std::vector<std::vector<written_range>> ranges(answers.size());
      const failure cause = outcome_of([&] {
        ranges = plan_writes(of_ranks);
        return failure();
      });
      for (std::size_t r = 0; r < answers.size(); ++r) {
        answers[r] = encode_outcome(cause);
        bootstrap::detail::append_bytes(answers[r], encode_ranges(ranges[r]));
      }
    }
    const bootstrap::blob mine = ranks_->scatter(answers);
    bootstrap::detail::blob_reader reader(mine);
    if (failure cause = decode_outcome(reader)) return cause;
    planned_ranges_ = decode_ranges(reader.bytes(reader.left()));
    return {};
  }

  /// The manifest with this rank's file alone, after the name of the process.
  bootstrap::blob encode_report(const manifest& mine) const {
    const std::string self = self_text();
    bootstrap::blob result;
    bootstrap::detail::append_integer(result, static_cast<std::uint32_t>(self.size()));
    bootstrap::detail::append_bytes(result, bootstrap::text_bytes(self));
    bootstrap::detail::append_bytes(result, bootstrap::text_bytes(encode_manifest(mine)));
    return result;
  }

  std::string self_text() const {
    return hocket::detail::concat({"rank ", ranks_->rank(), " on host ", platform::host_name()});
  }

  failure commit(const position& at, const std::map<std::string, std::string>& text,
                 const std::vector<bootstrap::blob>& reports) {
    manifest all;
    all.at = at;
    all.metadata = text;
    std::vector<std::string> writers;
    manifest_builder tensors(all);
    for (std::size_t r = 0; r < reports.size(); ++r) {
      bootstrap::detail::blob_reader reader(reports[r]);
      if (failure cause = decode_outcome(reader)) {
        cause.reason = hocket::detail::concat({"rank ", r, ": ", cause.reason});
        return cause;
      }
      const std::string writer = bootstrap::blob_text(reader.bytes(reader.integer<std::uint32_t>()));
      manifest part;
      const std::string problem = read_manifest(reader.rest_as_text(), part);
      if (!problem.empty())
        return make_failure(errc::corrupted, hocket::detail::concat({"the report of rank ", r, ": ", problem}));
      const std::size_t first = all.shards.size();
      for (shard_file& each : part.shards) {
        all.shards.push_back(std::move(each));
        writers.push_back(writer);
      }
      for (tensor_description& each : part.tensors) {
        tensor_description& known = tensors.tensor(each.name, each.type, each.extents);
        for (stored_part& one : each.parts) {
          one.shard += first;
          known.parts.push_back(std::move(one));
        }
      }
    }
    if (failure cause = folder_.commit(all, writers, self_text())) return cause;
    not_removed_.clear();
    const failure not_retired = folder_.retire(keep_, not_removed_);
    if (not_retired) not_removed_.push_back(not_retired.reason);
    removing_ = std::async(std::launch::async | std::launch::deferred, [this, before = not_removed_]() mutable {
      std::vector<std::string> remaining = remove_invalid();
      before.insert(before.end(), remaining.begin(), remaining.end());
      return std::move(before);
    });
    return {};
  }

  platform::file_system& files_;
  folder& folder_;
  rank_group* const ranks_;
  const retention keep_;
  write_buffers buffers_;
  bootstrap::blob planned_parts_;
  std::vector<written_range> planned_ranges_;
  std::string first_text_;  ///< rank 0 and its host
  std::vector<std::string> not_removed_;
  std::future<std::vector<std::string>>
      removing_;  ///< by rank 0, while the program continues; last member, so that it ends first
};

}  // namespace detail
}  // namespace checkpoint
HOCKET_END_NAMESPACE
