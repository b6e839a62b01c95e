// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Loads a state over the ranks of a group: rank 0 chooses the checkpoint, and on each host one rank reads each part
/// and sends it to those that need it.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/outcome.hpp>
#include <hocket/checkpoint/rank_group.hpp>
#include <hocket/checkpoint/shard_reader.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/checkpoint/write_plan.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// A checkpoint that was loaded.
struct loaded_checkpoint {
  position at;
  std::vector<std::string> refused;  ///< newer checkpoints that are damaged, each with the reason
};

namespace detail {

/// Functions are collective, and return the same failure on all ranks.
class loader {
 public:
  loader(platform::file_system& files, folder& in, rank_group& ranks)
      : files_(files), folder_(in), ranks_(ranks), host_(ranks.of_host()) {}

  /// Loads the newest checkpoint that is not damaged. `found` is empty if there is none.
  failure load_newest(state& into, std::optional<loaded_checkpoint>& found) {
    return load_first([this](const auto& tried, auto& next) { return find_newest(tried, next); }, into, found);
  }

  /// Loads the checkpoint of this position, or fails.
  failure load(const position& at, state& into) {
    std::optional<loaded_checkpoint> found;
    const auto choose = [&](const auto& tried, auto& next) {
      if (tried.empty()) next = at;
      return failure();
    };
    return load_first(choose, into, found);
  }

 private:
  bool is_first() const noexcept { return ranks_.rank() == 0; }

  /// A manifest that rank 0 offers to all.
  struct offer {
    failure cause;
    bool none_left = false;
    manifest from;
  };

  /// Offers the checkpoint `at`, or states that none is left; `cause` is a failure before. Only rank 0's arguments
  /// matter.
  offer make_offer(const std::optional<position>& at, failure cause) {
    offer result;
    std::string text;
    if (is_first() && !cause && at) cause = outcome_of([&] { return folder_.read(*at, text, result.from); });
    bootstrap::blob offered = encode_outcome(cause);
    bootstrap::detail::append_integer(offered, static_cast<std::uint8_t>(!at));
    if (!cause) bootstrap::detail::append_bytes(offered, bootstrap::text_bytes(text));
    offered = ranks_.broadcast(offered);
    bootstrap::detail::blob_reader reader(offered);
    result.cause = decode_outcome(reader);
    result.none_left = reader.integer<std::uint8_t>() != 0;
    if (result.cause || result.none_left || is_first()) return result;
    const std::string problem = read_manifest(reader.rest_as_text(), result.from);
    if (!problem.empty()) result.cause = make_failure(errc::corrupted, problem);
    return result;
  }

  /// A checkpoint that is damaged, and why.
  struct refusal {
    position at;
    std::string reason;
  };

  /// Tries the checkpoints that rank 0 chooses by `choose(refused before, next)` until one is not damaged, and loads that
  /// one. `choose` leaves `next` empty if there are no more.
  template <class Choose>
  failure load_first(Choose choose, state& into, std::optional<loaded_checkpoint>& found) {
    const std::vector<std::vector<state_part>> of_host = parts_of_host(into.parts());
    std::vector<refusal> refused;  // positions on rank 0 only
    for (;;) {
      std::optional<position> at;
      failure cause;
      if (is_first()) cause = outcome_of([&] { return choose(refused, at); });
      offer next = make_offer(at, std::move(cause));
      failure first = std::move(next.cause);
      if (!first && next.none_left) break;
      // Before anything is exchanged: the ranks of a host compute sizes of messages from all of their states.
      if (!first) first = agreed_of_all(ranks_, outcome_of([&] { return mismatch_of(next.from, into); }));
      if (!first) first = agreed_of_all(ranks_, outcome_of([&] { return read(next.from, into, of_host); }));
      if (!first) {
        into.text = next.from.metadata;
        found = loaded_checkpoint{next.from.at, {}};
        for (refusal& each : refused) found->refused.push_back(std::move(each.reason));
        return {};
      }
      if (first.code != errc::corrupted) return first;
      refused.push_back({at.value_or(position()), first.reason});
      if (at) folder_.refuse(*at);
    }
    if (refused.empty()) return {};
    std::string reason = refused.size() > 1 ? "all checkpoints are damaged; " : "";
    for (const refusal& each : refused)
      hocket::detail::append(reason, {&each == refused.data() ? "" : "; ", each.reason});
    return make_failure(errc::corrupted, std::move(reason));
  }

  /// Finds the newest checkpoint that was not refused. Lists the folder each time: another process may have saved a
  /// newer one, and removed the one that was refused.
  failure find_newest(const std::vector<refusal>& refused, std::optional<position>& result) {
    std::vector<position> all;
    if (failure cause = folder_.find_valid(all)) return cause;
    const auto is_new = [&](const position& at) {
      return std::none_of(refused.begin(), refused.end(), [&](const refusal& each) { return each.at == at; });
    };
    const auto found = std::find_if(all.begin(), all.end(), is_new);
    if (found != all.end()) result = *found;
    return {};
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

  static failure mismatch_of(const manifest& from, const state& into) {
    const tensor_index index(from);
    for (const state_part& each : into.parts()) {
      std::string why = why_not_in(index, each);
      if (!why.empty()) return make_failure(errc::mismatch, std::move(why));
    }
    return {};
  }

  /// Reads what this rank holds. Takes part in all exchanges of the host also after a failure. The states of all ranks
  /// must fit the manifest.
  failure read(const manifest& from, state& into, const std::vector<std::vector<state_part>>& of_host) {
    failure cause;
    const auto plan = plan_reads(from, of_host);
    const auto self = static_cast<std::size_t>(host_->rank());
    std::size_t rounds = 0;
    for (const auto& each : plan) rounds = std::max(rounds, each.size());
    part_reader reader(files_, folder_.path_of(from.at), from);
    bootstrap::blob out, in;
    const std::vector<reading>& mine = plan[self];
    reader.start(mine);
    for (std::size_t round = 0; round < rounds; ++round) {
      const bool reads = round < mine.size();
      if (reads && !cause) cause = reader.finish();
      if (reads && !cause) take_own(mine[round], reader, self, into);
      if (host_->size() > 1) exchange_round(plan, round, reader, into, out, in, !cause);
    }
    return cause;
  }

  /// Copies what this rank needs of the parts that it has read.
  static void take_own(const reading& what, const part_reader& from, std::size_t self, state& into) {
    for (const needed_part& part : what.parts) {
      for (const need& each : part.needs) {
        if (each.rank != self) continue;
        const state_part& to = into.parts()[each.held];
        copy_region(each.region, bytes_of(to.type), to.data, to.where, from.bytes_of_part(part).data(),
                    part.stored->where);
      }
    }
  }

  /// What of a part one rank sends to another.
  struct message_piece {
    const needed_part* part;
    const need* what;

    std::size_t bytes() const { return static_cast<std::size_t>(part->tensor->bytes_in(what->region)); }
  };

  /// Adds the pieces that rank `reader` reads in this round and `is_wanted(need)`, in the order of parts.
  template <class IsWanted>
  static void add_pieces(std::vector<message_piece>& to, const std::vector<std::vector<reading>>& plan,
                         std::size_t reader, std::size_t round, IsWanted is_wanted) {
    if (round >= plan[reader].size()) return;
    for (const needed_part& part : plan[reader][round].parts) {
      for (const need& each : part.needs) {
        if (is_wanted(each)) to.push_back({&part, &each});
      }
    }
  }

  /// Sends what this rank has read to the ranks that need it, and receives what it needs.
  void exchange_round(const std::vector<std::vector<reading>>& plan, std::size_t round, const part_reader& from,
                      state& into, bootstrap::blob& out, bootstrap::blob& in, bool is_valid) {
    const auto self = static_cast<std::size_t>(host_->rank());
    std::vector<std::size_t> sent(plan.size()), received(plan.size());
    std::vector<message_piece> outgoing, incoming;
    add_pieces(outgoing, plan, self, round, [&](const need& each) { return each.rank != self; });
    std::stable_sort(outgoing.begin(), outgoing.end(),
                     [](const auto& a, const auto& b) { return a.what->rank < b.what->rank; });
    for (const message_piece& each : outgoing) sent[each.what->rank] += each.bytes();
    for (std::size_t r = 0; r < plan.size(); ++r) {
      const std::size_t before = incoming.size();
      if (r != self) add_pieces(incoming, plan, r, round, [&](const need& each) { return each.rank == self; });
      for (std::size_t i = before; i < incoming.size(); ++i) received[r] += incoming[i].bytes();
    }
    out.resize(std::accumulate(sent.begin(), sent.end(), std::size_t{0}));
    in.resize(std::accumulate(received.begin(), received.end(), std::size_t{0}));
    std::byte* to = out.data();
    for (const message_piece& each : outgoing) {
      const rectangle& region = each.what->region;
      if (is_valid)
        copy_region(region, bytes_of(each.part->tensor->type), to, region, from.bytes_of_part(*each.part).data(),
                    each.part->stored->where);
      to += each.bytes();
    }
    host_->all_to_all(out, sent, in, received);
    const std::byte* at = in.data();
    for (const message_piece& each : incoming) {
      const state_part& held = into.parts()[each.what->held];
      copy_region(each.what->region, bytes_of(held.type), held.data, held.where, at, each.what->region);
      at += each.bytes();
    }
  }

  platform::file_system& files_;
  folder& folder_;
  rank_group& ranks_;
  std::unique_ptr<rank_group> host_;
};

}  // namespace detail
}  // namespace checkpoint
HOCKET_END_NAMESPACE
