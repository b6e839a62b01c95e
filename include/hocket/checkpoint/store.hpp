// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Saves and loads the state of a training, whole or not at all, on any mesh. A checkpoint that a crash interrupts is none;
/// one that is damaged is refused, and the one before is loaded.
///
/// @code
/// hocket::checkpoint::store saved("checkpoints", comm);
/// if (const auto found = saved.load_newest(now)) step = found->at.step;
/// for (;; ++step) {
///   train();
///   if (step % 100 == 0) saved.save(step, now);
/// }
/// @endcode
///
/// Files: see checkpoint/folder.hpp and checkpoint/manifest.hpp.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/rank_group.hpp>
#include <hocket/checkpoint/shard_reader.hpp>
#include <hocket/checkpoint/shard_writer.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/checkpoint/write_plan.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/split.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

struct store_options {
  retention keep{};                         ///< which checkpoints remain when a new one is valid
  std::uint64_t most_bytes_per_second = 0;  ///< limit of each rank's `save_async`; 0: none
  std::chrono::nanoseconds timeout =
      std::chrono::minutes(30);            ///< how long ranks wait for the slowest to write or read
  platform::file_system* files = nullptr;  ///< makes the system calls, for tests; null: the real ones
};

/// A checkpoint that was loaded.
struct loaded_checkpoint {
  position at;
  std::vector<std::string> refused;  ///< newer checkpoints that are damaged, each with the reason
};

namespace detail {

/// Begins with the failure of a rank, or with none; so that ranks report failures with what they exchange anyway.
inline bootstrap::blob encode_outcome(const failure& cause) {
  bootstrap::blob result;
  bootstrap::detail::append_integer(result, static_cast<std::int32_t>(cause.code.value()));
  bootstrap::detail::append_integer(result, static_cast<std::uint32_t>(cause.reason.size()));
  bootstrap::detail::append_bytes(result, bootstrap::text_bytes(cause.reason));
  return result;
}
inline failure decode_outcome(bootstrap::detail::blob_reader& reader) {
  const auto code = reader.integer<std::int32_t>();
  std::string reason = bootstrap::blob_text(reader.bytes(reader.integer<std::uint32_t>()));
  return code == 0 ? failure() : make_failure(static_cast<errc>(code), std::move(reason));
}

/// Calls `act` and returns its failure, also if it throws one.
template <class Act>
failure outcome_of(Act act) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    return act();
  } catch (const error& cause) {
    return cause.cause();
  }
#else
  return act();
#endif
}

/// What a rank writes in one save.
struct assignment {
  position at;
  std::vector<written_range> ranges;
};

/// Saves and loads over the ranks of a group. Functions are collective, and return the same failure on all ranks.
class engine {
 public:
  engine(std::string path, std::unique_ptr<rank_group> ranks, const store_options& options)
      : options_(options), files_(options.files != nullptr ? *options.files : own_files_),
        folder_(files_, std::move(path)), ranks_(std::move(ranks)), host_(ranks_->of_host()) {}

  /// Makes a folder, and decides what each rank writes. The plan of the last save is used again if no rank's parts have
  /// changed.
  failure begin_save(std::uint64_t step, const state& what, assignment& result) {
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
    if (!cause && is_first()) cause = outcome_of([&] { return folder_.begin(epoch_, step, result.at); });
    bootstrap::blob decided = encode_outcome(cause);
    bootstrap::detail::append_integer(decided, static_cast<std::uint8_t>(must_plan));
    for (const std::uint64_t each : {result.at.epoch, result.at.step, result.at.attempt})
      bootstrap::detail::append_integer(decided, each);
    decided = ranks_->broadcast(decided);
    bootstrap::detail::blob_reader reader(decided);
    if (failure first = decode_outcome(reader)) return first;
    must_plan = reader.integer<std::uint8_t>() != 0;
    for (std::uint64_t* const each : {&result.at.epoch, &result.at.step, &result.at.attempt})
      *each = reader.integer<std::uint64_t>();
    if (must_plan) {
      if (failure first = plan(parts)) return first;
      planned_parts_ = std::move(parts);
    }
    result.ranges = planned_ranges_;
    return {};
  }

  /// Writes this rank's file, and makes the checkpoint valid. Exchanges reports over `ranks`, which no other thread
  /// uses.
  failure write(rank_group& ranks, const position& at, const std::vector<source_part>& parts,
                const std::map<std::string, std::string>& text, write_rate rate) {
    manifest mine;
    failure cause = outcome_of([&]() -> failure {
      if (parts.empty()) return {};
      const std::string name = hocket::detail::concat({"shard-", ranks.rank(), "-of-", ranks.size(), ".safetensors"});
      if (failure first = write_shard(files_, folder_.path_of(at), name, parts, rate, mine)) return first;
      return folder_.sync_entries(at);
    });
    bootstrap::blob report = encode_outcome(cause);
    bootstrap::detail::append_bytes(report, encode_report(mine));
    const auto reports = ranks.gather(report);
    cause = {};
    if (is_first()) cause = outcome_of([&] { return commit(at, text, reports); });
    return agreed(ranks, cause);
  }

  /// Loads the newest checkpoint that is not damaged. `found` is empty if there is none.
  failure load_newest(state& into, std::optional<loaded_checkpoint>& found) {
    std::vector<position> candidates;
    failure cause;
    if (is_first()) cause = outcome_of([&] { return find_candidates(candidates); });
    return load_first(candidates, std::move(cause), into, found);
  }

  /// Loads the checkpoint of this position, or fails.
  failure load(const position& at, state& into) {
    std::optional<loaded_checkpoint> found;
    return load_first({at}, {}, into, found);
  }

  rank_group& ranks() noexcept { return *ranks_; }

 private:
  bool is_first() const noexcept { return ranks_->rank() == 0; }

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
    std::map<std::string, std::size_t> tensors;
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
        const auto [known, is_new] = tensors.try_emplace(each.name, all.tensors.size());
        if (is_new) all.tensors.push_back({each.name, each.type, each.extents, {}});
        for (stored_part& one : each.parts) {
          one.shard += first;
          all.tensors[known->second].parts.push_back(std::move(one));
        }
      }
    }
    if (failure cause = folder_.commit(all, writers, self_text())) return cause;
    return folder_.prune(options_.keep);
  }

  /// A manifest that rank 0 offers to all.
  struct offer {
    failure cause;
    bool none_left = false;
    manifest from;
  };

  /// Offers the checkpoint `at`, or states that none is left; `cause` is a failure before. Only rank 0's arguments matter.
  offer make_offer(const std::optional<position>& at, failure cause) {
    offer result;
    std::string text;
    if (is_first() && !cause && at) cause = outcome_of([&] { return folder_.read(*at, text, result.from); });
    bootstrap::blob offered = encode_outcome(cause);
    bootstrap::detail::append_integer(offered, static_cast<std::uint8_t>(!at));
    if (!cause) bootstrap::detail::append_bytes(offered, bootstrap::text_bytes(text));
    offered = ranks_->broadcast(offered);
    bootstrap::detail::blob_reader reader(offered);
    result.cause = decode_outcome(reader);
    result.none_left = reader.integer<std::uint8_t>() != 0;
    if (result.cause || result.none_left || is_first()) return result;
    const std::string problem = read_manifest(reader.rest_as_text(), result.from);
    if (!problem.empty()) result.cause = make_failure(errc::corrupted, problem);
    return result;
  }

  /// Loads the first of rank 0's candidates that is not damaged. `cause` is a failure before, of rank 0.
  failure load_first(const std::vector<position>& candidates, failure cause, state& into,
                     std::optional<loaded_checkpoint>& found) {
    const std::vector<std::vector<state_part>> of_host = parts_of_host(into.parts());
    loaded_checkpoint result;
    for (std::size_t i = 0;; ++i) {
      offer next =
          make_offer(i < candidates.size() ? std::optional(candidates[i]) : std::nullopt, std::exchange(cause, {}));
      failure first = std::move(next.cause);
      if (!first && next.none_left) break;
      if (!first) first = agreed_of_all(outcome_of([&] { return read(next.from, into, of_host); }));
      if (!first) {
        into.text = next.from.metadata;
        result.at = next.from.at;
        note_loaded(result.at, i > 0);
        found = std::move(result);
        return {};
      }
      if (first.code != errc::corrupted) return first;
      result.refused.push_back(first.reason);
    }
    if (result.refused.empty()) return {};
    std::string reason = "all checkpoints are damaged";
    for (const std::string& each : result.refused) hocket::detail::append(reason, {"; ", each});
    return make_failure(errc::corrupted, std::move(reason));
  }

  failure find_candidates(std::vector<position>& candidates) {
    const failure cause = folder_.find_valid(candidates);
    std::vector<std::string> ignored;
    return files_.list(folder_.path(), ignored) == ENOENT ? failure() : cause;
  }

  std::vector<std::vector<state_part>> parts_of_host(const std::vector<state_part>& own) {
    const auto gathered = host_->gather(encode_parts(own));
    const bootstrap::blob all = host_->broadcast(bootstrap::detail::joined_blobs(gathered));
    bootstrap::detail::blob_reader reader(all);
    std::vector<bootstrap::blob> of_ranks;
    bootstrap::detail::read_blobs(reader, host_->size(), of_ranks);
    std::vector<std::vector<state_part>> result;
    for (const auto& each : of_ranks) result.push_back(decode_parts(each));
    return result;
  }

  /// Reads what this rank holds. Takes part in all exchanges of the host also after a failure.
  failure read(const manifest& from, state& into, const std::vector<std::vector<state_part>>& of_host) {
    failure cause;
    for (const state_part& each : into.parts()) {
      std::string why = why_not_in(from, each);
      if (!why.empty() && !cause) cause = make_failure(errc::mismatch, std::move(why));
    }
    const auto plan = plan_reads(from, of_host);
    const auto self = static_cast<std::size_t>(host_->rank());
    std::size_t rounds = 0;
    for (const auto& each : plan) rounds = std::max(rounds, each.size());
    part_reader reader(files_, folder_.path_of(from.at), from);
    bootstrap::blob out, in;
    for (std::size_t round = 0; round < rounds; ++round) {
      const reading* const own = round < plan[self].size() ? &plan[self][round] : nullptr;
      if (own != nullptr && !cause) cause = reader.read(*own);
      if (own != nullptr) take_own(*own, reader.bytes(), self, into, !cause);
      if (host_->size() > 1) exchange_round(plan, round, reader.bytes(), into, out, in, !cause);
    }
    return cause;
  }

  static void take_own(const reading& what, std::span<const std::byte> bytes, std::size_t self, state& into,
                       bool is_valid) {
    for (const need& each : what.needs) {
      if (each.rank != self || !is_valid) continue;
      const state_part& to = into.parts()[each.held];
      copy_region(each.region, bytes_of(to.type), to.data, to.where, bytes.data(), what.part->where);
    }
  }

  void exchange_round(const std::vector<std::vector<reading>>& plan, std::size_t round,
                      std::span<const std::byte> bytes, state& into, bootstrap::blob& out, bootstrap::blob& in,
                      bool is_valid) {
    const auto self = static_cast<std::size_t>(host_->rank());
    std::vector<std::size_t> sent(plan.size()), received(plan.size());
    for (std::size_t r = 0; r < plan.size(); ++r) {
      if (round >= plan[r].size()) continue;
      const reading& what = plan[r][round];
      for (const need& each : what.needs) {
        const auto count = static_cast<std::size_t>(what.tensor->bytes_in(each.region));
        if (r == self && each.rank != self) sent[each.rank] += count;
        if (r != self && each.rank == self) received[r] += count;
      }
    }
    out.resize(std::accumulate(sent.begin(), sent.end(), std::size_t{0}));
    in.resize(std::accumulate(received.begin(), received.end(), std::size_t{0}));
    if (is_valid && round < plan[self].size()) {
      const reading& what = plan[self][round];
      std::byte* to = out.data();
      for (const need& each : what.needs) {
        if (each.rank == self) continue;
        copy_region(each.region, bytes_of(what.tensor->type), to, each.region, bytes.data(), what.part->where);
        to += what.tensor->bytes_in(each.region);
      }
    }
    host_->all_to_all(out, sent, in, received);
    const std::byte* at = in.data();
    for (std::size_t r = 0; r < plan.size(); ++r) {
      if (r == self || round >= plan[r].size()) continue;
      for (const need& each : plan[r][round].needs) {
        if (each.rank != self) continue;
        const state_part& to = into.parts()[each.held];
        copy_region(each.region, bytes_of(to.type), to.data, to.where, at, each.region);
        at += plan[r][round].tensor->bytes_in(each.region);
      }
    }
  }

  /// Returns rank 0's failure on all ranks.
  static failure agreed(rank_group& ranks, const failure& of_first) {
    const bootstrap::blob outcome = ranks.broadcast(encode_outcome(of_first));
    bootstrap::detail::blob_reader reader(outcome);
    return decode_outcome(reader);
  }
  /// Returns the failure of the first rank that has one, on all ranks.
  failure agreed_of_all(const failure& mine) {
    failure first;
    const auto all = ranks_->gather(encode_outcome(mine));
    for (std::size_t r = 0; r < all.size() && !first; ++r) {
      bootstrap::detail::blob_reader reader(all[r]);
      first = decode_outcome(reader);
      if (first) first.reason = hocket::detail::concat({"rank ", r, ": ", first.reason});
    }
    return agreed(*ranks_, first);
  }

  /// Checkpoints from now on are later than all that exist.
  void note_loaded(const position& at, bool newer_exist) noexcept { epoch_ = at.epoch + (newer_exist ? 1 : 0); }

  const store_options options_;
  platform::file_system own_files_;
  platform::file_system& files_;
  folder folder_;
  std::unique_ptr<rank_group> ranks_, host_;
  std::uint64_t epoch_ = 0;
  bootstrap::blob planned_parts_;
  std::vector<written_range> planned_ranges_;
};

}  // namespace detail

namespace detail {

/// What a rank writes of a state, copied, so that the program can continue.
class snapshot {
 public:
  /// Keeps the memory of the last snapshot.
  void take(const state& what, const assignment& mine) {
    at_ = mine.at;
    text_ = what.text;
    held_ = what.parts();
    parts_ = source_parts(held_, mine.ranges);
    std::size_t bytes = 0;
    for (const source_part& each : parts_) bytes += each.bytes.size();
    if (memory_.size() < bytes) memory_ = std::vector<std::byte>(bytes);
    std::byte* to = memory_.data();
    for (source_part& each : parts_) {
      if (!each.bytes.empty()) std::memcpy(to, each.bytes.data(), each.bytes.size());
      each.bytes = {to, each.bytes.size()};
      to += each.bytes.size();
    }
  }

  const position& at() const noexcept { return at_; }
  const std::map<std::string, std::string>& text() const noexcept { return text_; }
  const std::vector<source_part>& parts() const noexcept { return parts_; }

 private:
  position at_;
  std::map<std::string, std::string> text_;
  std::vector<state_part> held_;  ///< to which the parts refer
  std::vector<source_part> parts_;
  std::vector<std::byte> memory_;
};

}  // namespace detail

/// **Collective:** the constructor and all functions, with equal arguments besides the memory of the state. **Errors** are
/// the same on all ranks: `invalid_argument` if the state is not one (see `state`); `system` if a call of the system
/// fails, with the file and the offset; `mismatch` if a checkpoint has other tensors than the state; `corrupted` if all
/// checkpoints are damaged; and those of communication. A save that fails leaves the checkpoints before it. **Threads.** One
/// thread of a rank uses the object at a time; `save_async` starts one more, which ends with the save.
class store {
 public:
  /// @param path the folder of all checkpoints, which all hosts share; its parent must exist
  template <class Domain>
  store(std::string path, const communicator<Domain>& comm, const store_options& options = {})
      : options_(options), engine_(std::move(path), group_of(comm, options), options) {}
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  /// Waits for a save that is in progress; its failure is lost. Call `wait` before to get it.
  ~store() { finish(); }

  /// Saves `what` as the checkpoint of `step`. When it returns, the checkpoint survives a loss of power. Cost: each
  /// element is written once, by one of the ranks that hold it.
  position save(std::uint64_t step, const state& what) {
    wait();
    detail::assignment mine;
    failure cause = engine_.begin_save(step, what, mine);
    if (!cause) {
      const auto parts = source_parts(what.parts(), mine.ranges);
      cause = engine_.write(engine_.ranks(), mine.at, parts, what.text, write_rate());
    }
    if (cause) fail("checkpoint save", std::move(cause));
    return mine.at;
  }

  /// Copies what this rank writes, and returns while a thread writes it, at most `most_bytes_per_second`. The memory of
  /// the state may change at once. Waits for the save before, if that is in progress, and raises its failure. Cost: a
  /// copy of the rank's share, which stays allocated for the next save.
  position save_async(std::uint64_t step, const state& what) {
    wait();
    if (!background_ranks_) background_ranks_ = engine_.ranks().copy();
    detail::assignment mine;
    if (failure cause = engine_.begin_save(step, what, mine)) fail("checkpoint save", std::move(cause));
    snapshot_.take(what, mine);
    is_done_.store(false, std::memory_order_relaxed);
    writer_ = std::thread([this] {
      failure_ = detail::outcome_of([&] {
        return engine_.write(*background_ranks_, snapshot_.at(), snapshot_.parts(), snapshot_.text(),
                             write_rate(options_.most_bytes_per_second));
      });
      is_done_.store(true, std::memory_order_release);
    });
    return mine.at;
  }

  /// Returns whether the save that `save_async` has started last is complete on this rank. Not collective.
  bool is_done() const noexcept { return is_done_.load(std::memory_order_acquire); }

  /// Waits until the save that `save_async` has started is complete, and raises its failure.
  void wait() {
    finish();
    if (failure cause = std::exchange(failure_, {})) fail("checkpoint save", std::move(cause));
  }

  /// Loads the checkpoint of `at` into `into`. After an error, its elements are undefined.
  void load(const position& at, state& into) {
    wait();
    if (failure cause = engine_.load(at, into)) fail("checkpoint load", std::move(cause));
  }

  /// Loads the newest checkpoint that is not damaged into `into`; returns nothing if there is no checkpoint. The state may
  /// have fewer tensors than the checkpoint. After an error, its elements are undefined. Cost: on each host, each byte
  /// that a rank needs is read once.
  std::optional<loaded_checkpoint> load_newest(state& into) {
    wait();
    std::optional<loaded_checkpoint> found;
    if (failure cause = engine_.load_newest(into, found)) fail("checkpoint load", std::move(cause));
    return found;
  }

 private:
  template <class Domain>
  static std::unique_ptr<detail::rank_group> group_of(const communicator<Domain>& comm, const store_options& options) {
    communicator<Domain> own = hocket::split(comm, color{0}, key{comm.rank()});
    own.set_timeout(options.timeout);
    return std::make_unique<detail::rank_group_over<Domain>>(std::move(own));
  }

  void finish() {
    if (writer_.joinable()) writer_.join();
  }

  [[noreturn]] void fail(const char* operation, failure cause) {
    cause.context.operation = operation;
    cause.context.rank = engine_.ranks().rank();
    cause.context.ranks = engine_.ranks().size();
    raise(std::move(cause));
  }

  const store_options options_;
  detail::engine engine_;
  std::unique_ptr<detail::rank_group> background_ranks_;
  detail::snapshot snapshot_;
  std::thread writer_;
  failure failure_;  ///< of the thread, after it has ended
  std::atomic<bool> is_done_{true};
};

}  // namespace checkpoint
HOCKET_END_NAMESPACE
