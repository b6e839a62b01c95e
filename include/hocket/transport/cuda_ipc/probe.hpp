// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A probe of whether ranks can really reach each other's memory. The driver's answer is wrong on some machines:
/// promised peer access delivers other bytes, or handles open but can't be read. So each pair tries: it copies bytes
/// from the peer's memory and back into it, and both sides check the result.
///
/// The result is a table that is equal on all ranks. It contains a readable reason for each pair that can't; the
/// buffers of that pair are then staged through pinned memory.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/mixed_bits.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/mapping_cache.hpp>
#include <hocket/transport/cuda_ipc/memory_handle.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// The table of which ranks reach which. Equal on all ranks.
class reach {
 public:
  explicit reach(std::size_t ranks = 0) : ranks_(ranks), reasons_(ranks * ranks) {}

  /// Returns why ranks `a` and `b` can't reach each other's memory; empty if they can.
  const std::string& why_not(int a, int b) const noexcept { return reasons_[index(a, b)]; }
  /// True if all ranks reach all ranks.
  bool complete() const noexcept {
    for (const std::string& each : reasons_) {
      if (!each.empty()) return false;
    }
    return true;
  }

  void deny(std::size_t a, std::size_t b, const std::string& why) {
    reasons_[a * ranks_ + b] = why;
    reasons_[b * ranks_ + a] = why;
  }

 private:
  std::size_t index(int a, int b) const noexcept {
    return static_cast<std::size_t>(a) * ranks_ + static_cast<std::size_t>(b);
  }

  std::size_t ranks_;
  std::vector<std::string> reasons_;
};

namespace detail {

inline constexpr std::size_t probe_block = 4096;

/// Memory that a rank offers for reading and writing: its own block, and one for each rank.
struct probe_offer {
  memory_handle memory;
  std::uint64_t seed = 0;     ///< seed of the bytes in it
  std::uint64_t context = 0;  ///< only valid in the same process
};

/// Fills a block with bytes that memory does not contain by chance.
inline void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) noexcept {
  for (std::size_t at = 0; at + sizeof seed <= bytes.size(); at += sizeof seed) {
    const std::uint64_t word = hocket::detail::mixed_bits(seed += hocket::detail::golden_ratio);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

inline bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::vector<std::byte> expected(bytes.size());
  fill_pattern(expected, seed);
  return std::memcmp(expected.data(), bytes.data(), bytes.size()) == 0;
}

/// Returns the seed of the bytes that `rank` writes into the memory of a rank that has offered with `seed`.
constexpr std::uint64_t answer_seed(std::uint64_t seed, std::size_t rank) noexcept {
  return ~seed + (rank + 1) * 0xD1342543DE82EF95U;
}

/// First byte of a rank's answer: a refusal text may be as long as an offer.
inline constexpr std::uint8_t refuses = 0, offers = 1;

inline std::vector<std::byte> encode_offer(const probe_offer& what) {
  std::vector<std::byte> out;
  bootstrap::detail::append_integer(out, offers);
  bootstrap::detail::append_bytes(out, encode(what.memory));
  bootstrap::detail::append_integer(out, what.seed);
  bootstrap::detail::append_integer(out, what.context);
  return out;
}

inline std::vector<std::byte> encode_refusal(const std::string& why) {
  std::vector<std::byte> out;
  bootstrap::detail::append_integer(out, refuses);
  bootstrap::detail::append_bytes(out, bootstrap::text_bytes(why));
  return out;
}

/// Decodes an offer; or returns nothing and sets `why` to the rank's refusal.
inline std::optional<probe_offer> decode_offer(std::span<const std::byte> bytes, std::size_t room, std::string& why) {
  bootstrap::detail::blob_reader from(bytes);
  const auto begins = from.integer<std::uint8_t>();
  if (from.ok() && begins == refuses) {
    why = from.rest_as_text();
    return std::nullopt;
  }
  const std::span<const std::byte> handle = from.bytes(encoded_handle_bytes);
  const std::optional<memory_handle> memory = decode(handle);
  probe_offer result;
  result.seed = from.integer<std::uint64_t>();
  result.context = from.integer<std::uint64_t>();
  if (begins == offers && memory && from.ok() && from.left() == 0 && memory->length >= room) {
    result.memory = *memory;
    return result;
  }
  why = "it sent an invalid description of its test memory";
  return std::nullopt;
}

/// Encodes texts, one for each rank.
inline std::vector<std::byte> encode_reasons(const std::vector<std::string>& all) {
  std::vector<bootstrap::blob> blobs;
  for (const std::string& each : all) blobs.push_back(bootstrap::text_blob(each));
  return bootstrap::detail::joined_blobs(blobs);
}

inline std::vector<std::string> decode_reasons(std::span<const std::byte> bytes, std::size_t ranks) {
  bootstrap::detail::blob_reader from(bytes);
  std::vector<bootstrap::blob> blobs;
  if (!bootstrap::detail::read_blobs(from, static_cast<int>(ranks), blobs)) {
    return std::vector<std::string>(ranks, "a rank did not report whether it reaches the device memory of the others");
  }
  std::vector<std::string> result;
  for (const bootstrap::blob& each : blobs) result.push_back(bootstrap::blob_text(each));
  return result;
}

/// One rank's part of a probe.
template <class Driver>
class prober {
 public:
  using lease = typename mapping_cache<Driver>::lease;

  prober(const driver_context<Driver>& at, const process_mark& own, std::size_t rank, const deadline& until)
      : at_(at), own_(own), rank_(rank), until_(until), opened_(*at.through, at.where, own) {}

  reach operator()(const transport::exchange_function& exchange, std::size_t ranks) {
    offers_.assign(ranks, std::nullopt);
    refusals_.assign(ranks, std::string());
    const std::vector<std::vector<std::byte>> offered = exchange(own_offer(ranks));
    for (std::size_t peer = 0; peer < ranks && peer < offered.size(); ++peer) {
      offers_[peer] = decode_offer(offered[peer], room_for(ranks), refusals_[peer]);
    }
    reasons own = try_all();
    if (stuck_ && offers_[rank_]) own[rank_] = "a copy from or to a peer did not end";
    opened_.close_all();  // before others free their memory, after the last exchange
    const auto tried = all_reasons(exchange, own, ranks);
    const auto seen = all_reasons(exchange, check_answers(tried), ranks);
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      if (!tried[peer][peer].empty()) memory_.abandon();  // an unfinished copy may use it
    }
    return combine_reasons(tried, seen);
  }

 private:
  using reasons = std::vector<std::string>;

  static constexpr std::size_t room_for(std::size_t ranks) noexcept { return (ranks + 1) * probe_block; }

  std::vector<std::byte> own_offer(std::size_t ranks) {
    probe_offer made;
    made.seed = seed();
    made.context = reinterpret_cast<std::uintptr_t>(at_.where);
    failure found = device_memory<Driver>::make(at_, memory_, room_for(ranks));
    if (!found) found = pinned_memory<Driver>::make(at_, pinned_, probe_block);
    if (!found) found = owned_stream<Driver>::make(at_, stream_);
    if (!found) found = describe_own(room_for(ranks), made.memory);
    if (!found) {
      fill_pattern(block(), made.seed);
      found = copied(memory_.get(), pinned_address());
    }
    if (!found) return encode_offer(made);
    return encode_refusal("it can't provide test memory: " + found.message());
  }

  failure describe_own(std::size_t bytes, memory_handle& result) {
    const context_scope scope(*at_.through, at_.where);
    if (failure found = scope.refused()) return found;
    return describe(*at_.through, memory_.get(), bytes, own_, result);
  }

  /// Returns a new seed, so that bytes of an earlier probe do not pass this one.
  std::uint64_t seed() const noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return static_cast<std::uint64_t>(now) ^ (static_cast<std::uint64_t>(own_.pid) << 40) ^ (rank_ << 32);
  }

  std::span<std::byte> block() const noexcept { return {static_cast<std::byte*>(pinned_.get()), probe_block}; }
  address pinned_address() const noexcept { return reinterpret_cast<address>(pinned_.get()); }

  /// Copies one block and waits until the copy is done. If it does not end, abandons what it uses.
  failure copied(address to, address from) {
    if (stuck_) return make_failure(errc::timeout, "an earlier copy did not end");
    const context_scope scope(*at_.through, at_.where);
    status returned = scope.entered();
    if (returned == status::success) returned = at_.through->memcpy_async(to, from, probe_block, stream_.get());
    if (returned != status::success) return status_failure(*at_.through, "copying a test block", returned);
    bool idle = false;
    failure found = finish(*at_.through, stream_.get(), until_, idle);
    if (!idle) abandon_memory();
    return found;
  }

  void abandon_memory() noexcept {
    stuck_ = true;
    memory_.abandon();
    pinned_.abandon();
    stream_.abandon();
  }

  /// Returns the rank that probes for `rank`: threads of one process on one device reach what their first rank reaches.
  std::size_t first_of(std::size_t rank) const noexcept {
    if (!offers_[rank]) return rank;
    for (std::size_t each = 0; each < rank; ++each) {
      if (offers_[each] && together(*offers_[each], *offers_[rank])) return each;
    }
    return rank;
  }
  static bool together(const probe_offer& a, const probe_offer& b) noexcept {
    return a.memory.process.same_process(b.memory.process) && a.memory.device == b.memory.device;
  }

  reasons try_all() {
    reasons result(offers_.size());
    if (first_of(rank_) != rank_) return result;
    for (std::size_t peer = 0; peer < offers_.size(); ++peer) {
      if (peer == rank_ || first_of(peer) != peer) continue;
      if (!offers_[rank_]) {
        result[peer] = hocket::detail::concat({"rank ", rank_, ": ", refusals_[rank_]});
      } else if (!offers_[peer]) {
        result[peer] = hocket::detail::concat({"rank ", peer, ": ", refusals_[peer]});
      } else {
        result[peer] = try_one(peer);
      }
    }
    return result;
  }

  /// Returns why this rank does not reach the memory of `peer`; empty if it does.
  std::string try_one(std::size_t peer) {
    const probe_offer& offer = *offers_[peer];
    lease theirs;
    failure found;
    if (own_.same_process(offer.memory.process)) found = enable_access(offer);
    if (!found) found = opened_.open(offer.memory, theirs);
    if (!found) found = copied(pinned_address(), theirs.data());
    if (!found && !has_pattern(block(), offer.seed)) {
      found = make_failure(errc::corrupted, "a test block copied from it has wrong bytes");
    }
    if (!found) {
      fill_pattern(block(), answer_seed(offer.seed, rank_));
      found = copied(theirs.data() + (rank_ + 1) * probe_block, pinned_address());
    }
    if (stuck_) theirs.abandon();
    theirs = {};
    if (!found) return {};
    return hocket::detail::concat(
        {"rank ", rank_, " can't reach the device memory of rank ", peer, ": ", found.message()});
  }

  /// Enables access between devices of this process. A copy alone proves nothing: the driver may copy through the host.
  failure enable_access(const probe_offer& offer) {
    const context_scope scope(*at_.through, at_.where);
    if (failure found = scope.refused()) return found;
    const auto theirs = reinterpret_cast<context_handle>(static_cast<std::uintptr_t>(offer.context));
    const status returned = at_.through->ctx_enable_peer_access(theirs, 0U);
    if (returned == status::success || returned == status::peer_access_already_enabled) return {};
    return status_failure(*at_.through, "enabling access between two devices", returned);
  }

  /// Checks the bytes that peers have written into this rank's memory.
  reasons check_answers(const std::vector<reasons>& tried) {
    reasons result(offers_.size());
    if (!offers_[rank_] || first_of(rank_) != rank_) return result;
    for (std::size_t peer = 0; peer < offers_.size(); ++peer) {
      if (peer == rank_ || !offers_[peer] || first_of(peer) != peer || !tried[peer][rank_].empty()) continue;
      failure found = copied(pinned_address(), memory_.get() + (peer + 1) * probe_block);
      if (!found && !has_pattern(block(), answer_seed(offers_[rank_]->seed, peer))) {
        found = make_failure(errc::corrupted, "a test block written into it did not arrive");
      }
      if (!found) continue;
      result[peer] = hocket::detail::concat(
          {"rank ", peer, " can't reach the device memory of rank ", rank_, ": ", found.message()});
    }
    return result;
  }

  static std::vector<reasons> all_reasons(const transport::exchange_function& exchange, const reasons& own,
                                          std::size_t ranks) {
    std::vector<reasons> result;
    for (const std::vector<std::byte>& each : exchange(encode_reasons(own))) {
      result.push_back(decode_reasons(each, ranks));
    }
    result.resize(ranks, reasons(ranks, "a rank did not report whether it reaches the device memory of the others"));
    return result;
  }

  reach combine_reasons(const std::vector<reasons>& tried, const std::vector<reasons>& seen) const {
    reach result(offers_.size());
    for (std::size_t a = 0; a < offers_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const std::size_t first = first_of(a), second = first_of(b);
        if (first == second) continue;
        for (const std::string* const each :
             {&tried[first][second], &tried[second][first], &seen[first][second], &seen[second][first]}) {
          if (!each->empty()) {
            result.deny(a, b, *each);
            break;
          }
        }
      }
    }
    return result;
  }

  const driver_context<Driver> at_;
  const process_mark own_;
  const std::size_t rank_;
  const deadline until_;
  mapping_cache<Driver> opened_;
  device_memory<Driver> memory_;
  pinned_memory<Driver> pinned_;
  owned_stream<Driver> stream_;
  std::vector<std::optional<probe_offer>> offers_;
  reasons refusals_;
  bool stuck_ = false;
};

}  // namespace detail

/// Probes all pairs. Collective over the `ranks` that `exchange` joins, once per domain: three exchanges, a block of 4
/// KiB read and one written per pair of processes and devices. Equal on all ranks. An error of the driver is a reason
/// in the result, not a failure; copies end at `until`, and what unfinished copies use stays allocated until the
/// process ends. Throws what `exchange` throws. Otherwise leaves nothing mapped or allocated.
template <class Driver>
reach probe(const driver_context<Driver>& at, const process_mark& own, int rank, std::size_t ranks,
            const transport::exchange_function& exchange, const deadline& until) {
  return detail::prober<Driver>(at, own, static_cast<std::size_t>(rank), until)(exchange, ranks);
}

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
