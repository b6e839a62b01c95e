// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads what a host's ranks need of a checkpoint, on any mesh: the intersections of the rectangles in files with those
/// that the ranks hold. Each byte is read by one rank of the host, which sends it to the others that need it; every
/// byte that is used is verified.
#pragma once

#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/shard_writer.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/crc32c.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {
namespace detail {

/// Elements of a stored part that a rank of the host needs, and which of its parts they belong to.
struct need {
  std::size_t rank;
  std::size_t held;
  rectangle region;
};

/// One stored part that ranks of the host need.
struct needed_part {
  const tensor_description* tensor;
  const stored_part* stored;
  std::vector<need> needs;  ///< by rank

  std::uint64_t at() const noexcept { return stored->at; }
  std::uint64_t bytes() const noexcept { return tensor->bytes_in(stored->where); }
  std::uint64_t end() const noexcept { return at() + bytes(); }
};

/// Parts that are adjacent in one file, in its order, and are read at once.
struct reading {
  std::vector<needed_part> parts;

  std::size_t shard() const noexcept { return parts.front().stored->shard; }
  std::uint64_t at() const noexcept { return parts.front().at(); }
  std::uint64_t end() const noexcept { return parts.back().end(); }
};

/// A range of bytes of a file.
struct byte_range {
  std::uint64_t begin;
  std::uint64_t end;

  bool includes(const byte_range& other) const noexcept { return begin <= other.begin && other.end <= end; }
};

/// Returns the blocks of the file that have elements of the regions, as ranges in ascending order with gaps between
/// them.
inline std::vector<byte_range> blocks_needed(const reading& of) {
  std::vector<byte_range> ranges;
  for (const needed_part& part : of.parts) {
    const rectangle& where = part.stored->where;
    const std::uint64_t element = bytes_of(part.tensor->type);
    for (const need& each : part.needs) {
      for_each_run(each.region, where, where, [&](const sizes_type& at, std::uint64_t run) {
        const std::uint64_t begin = part.at() + offset_in(where, at) * element, end = begin + run * element;
        const byte_range blocks{begin / block_bytes * block_bytes, (end + block_bytes - 1) / block_bytes * block_bytes};
        if (!ranges.empty() && ranges.back().begin <= blocks.begin && blocks.begin <= ranges.back().end)
          ranges.back().end = std::max(ranges.back().end, blocks.end);
        else ranges.push_back(blocks);
      });
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<byte_range> joined;
  for (const byte_range& each : ranges) {
    if (!joined.empty() && each.begin <= joined.back().end) joined.back().end = std::max(joined.back().end, each.end);
    else joined.push_back(each);
  }
  return joined;
}

/// Reads and verifies parts of a checkpoint's files: while the caller uses some, the next two readings are in progress,
/// so that the storage always has work.
class part_reader {
 public:
  part_reader(platform::file_system& files, std::string folder, const manifest& from)
      : files_(files), folder_(std::move(folder)), from_(from), opened_(from.shards.size()) {}

  /// Starts to read the blocks that are needed of these parts, which must exist until all are finished.
  void start(std::span<const reading> all) {
    all_ = all;
    started_ = finished_ = 0;
    while (started_ < all_.size() && started_ + 1 < slots_.size()) start_next();
  }

  /// Waits until the next of the readings is complete, and verifies what is needed of its parts.
  failure finish() {
    slot& own = slots_[finished_++ % slots_.size()];
    failure cause = own.not_opened ? std::exchange(own.not_opened, {}) : own.in_progress.get();
    if (cause) return cause;
    if (started_ < all_.size()) start_next();
    for (const needed_part& each : own.what->parts) {
      if (failure damage = verify(own, each)) return damage;
    }
    return {};
  }

  /// Does both for one reading.
  failure read(const reading& what) {
    start({&what, 1});
    return finish();
  }

  /// The bytes of a part of what the last `finish` has read, until the next one; undefined in blocks that are not
  /// needed.
  std::span<const std::byte> bytes_of_part(const needed_part& of) const noexcept {
    return bytes_in(slots_[(finished_ - 1) % slots_.size()], of);
  }

 private:
  /// A range of a file in memory that permits direct access.
  class window {
   public:
    void reset(std::size_t at, std::size_t length) {
      at_ = at;
      length_ = length;
      const std::size_t wanted = up(at + length) - down(at);
      if (!memory_ || memory_->bytes().size() < wanted) memory_.emplace(wanted);
    }
    std::span<std::byte> bytes() const noexcept { return memory_->bytes().subspan(at_ - down(at_), length_); }
    /// Memory for the file's bytes from `begin` on, where that is a multiple of the alignment.
    std::span<std::byte> aligned(std::size_t begin, std::size_t end) const noexcept {
      return memory_->bytes().subspan(begin - down(at_), end - begin);
    }
    std::size_t at() const noexcept { return at_; }

    static std::size_t down(std::size_t at) noexcept {
      return at / platform::direct_access_bytes * platform::direct_access_bytes;
    }
    static std::size_t up(std::size_t at) noexcept { return down(at + platform::direct_access_bytes - 1); }

   private:
    std::optional<aligned_buffer> memory_;
    std::size_t at_ = 0, length_ = 0;
  };

  /// What is read at once.
  struct slot {
    const reading* what = nullptr;
    std::vector<byte_range> needed;
    window content, checksums;
    bool has_checksums = false;
    std::uint64_t first_block = 0;  ///< number of the first of the checksums
    failure not_opened;
    std::future<failure> in_progress;  ///< last member, so that it ends before its memory is freed

    /// Returns whether all bytes of the range were asked for.
    bool is_read(const byte_range& range) const noexcept {
      const auto found = std::partition_point(needed.begin(), needed.end(),
                                              [&](const byte_range& each) { return each.end <= range.begin; });
      return found != needed.end() && found->includes(range);
    }
  };

  static std::span<const std::byte> bytes_in(const slot& from, const needed_part& of) noexcept {
    return from.content.bytes().subspan(static_cast<std::size_t>(of.at()) - from.content.at(),
                                        static_cast<std::size_t>(of.bytes()));
  }

  static constexpr std::size_t most_open = 64;  ///< processes may have 1024 descriptors, and a checkpoint more files

  void start_next() {
    slot& to = slots_[started_ % slots_.size()];
    to.what = &all_[started_++];
    to.needed = blocks_needed(*to.what);
    to.has_checksums = false;
    to.not_opened = open(to.what->shard());  // which checks the length of the file, before memory is allocated
    if (to.not_opened) return;
    const auto bytes = static_cast<std::size_t>(to.what->end() - to.what->at());
    to.content.reset(static_cast<std::size_t>(to.what->at()), bytes);
    to.in_progress = start_access(bytes, [this, &to] { return read_blocks(to); });
  }

  /// Reads the blocks that are needed; and, if they are not all of the parts, the checksums of the parts' blocks.
  failure read_blocks(slot& to) {
    const byte_range all{to.what->at(), to.what->end()};
    for (const byte_range& each : to.needed) {
      const std::uint64_t begin = std::max(each.begin, all.begin), end = std::min(each.end, all.end);
      if (failure cause = read_into(to.content, to.what->shard(), begin - all.begin, end - all.begin)) return cause;
    }
    return to.needed.empty() || to.is_read(all) ? failure() : read_checksums(to);
  }

  /// Reads the checksums of all blocks of the parts.
  failure read_checksums(slot& to) {
    to.first_block = to.what->parts.front().stored->first_block;
    std::uint64_t end = to.first_block;
    for (const needed_part& each : to.what->parts) {
      to.first_block = std::min(to.first_block, each.stored->first_block);
      end = std::max(end, each.stored->first_block + blocks_of(each.at(), each.bytes()));
    }
    const std::size_t shard = to.what->shard(), size = sizeof(std::uint32_t);
    to.checksums.reset(static_cast<std::size_t>(from_.shards[shard].blocks_at + to.first_block * size),
                       static_cast<std::size_t>((end - to.first_block) * size));
    to.has_checksums = true;
    return read_into(to.checksums, shard, 0, (end - to.first_block) * size);
  }

  std::string path_of(std::size_t shard) const { return folder_ + '/' + from_.shards[shard].file; }

  /// Opens a file, and closes the one whose last use is the longest ago if many are open. The readings in progress use
  /// the last ones.
  failure open(std::size_t shard) {
    static_assert(most_open > std::tuple_size_v<decltype(slots_)>);
    std::erase(by_use_, shard);
    by_use_.push_back(shard);
    if (by_use_.size() > most_open) {
      opened_[by_use_.front()].reset();
      by_use_.erase(by_use_.begin());
    }
    if (opened_[shard]) return {};
    int error = files_.open(path_of(shard), platform::file_use::read_directly, opened_[shard]);
    std::uint64_t bytes = 0;
    if (error == 0) error = files_.size_of(opened_[shard].get(), bytes);
    if (error != 0) return read_failure("open", path_of(shard), 0, error);
    if (bytes == from_.shards[shard].bytes) return {};
    opened_[shard].reset();
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path_of(shard), "' has ", bytes,
                                                                 " bytes instead of ", from_.shards[shard].bytes}));
  }

  /// Reads bytes `begin` to `end`, excluded, of the window.
  failure read_into(const window& to, std::size_t shard, std::uint64_t begin, std::uint64_t end) {
    std::size_t at = window::down(to.at() + static_cast<std::size_t>(begin));
    const std::size_t last = to.at() + static_cast<std::size_t>(end);
    while (at < last) {
      std::size_t count = 0;
      const int error = files_.read(opened_[shard].get(), to.aligned(at, window::up(last)), at, count);
      if (error != 0) return read_failure("read", path_of(shard), at, error);
      if (count == 0)
        return make_failure(errc::corrupted, hocket::detail::concat({"'", path_of(shard), "' ends at byte ", at}));
      if (at + count >= last) break;
      // Direct access continues at a multiple of the alignment; a file without it may have yielded less.
      at = std::max(window::down(at + count), at + (count < platform::direct_access_bytes ? count : 0));
    }
    return {};
  }

  /// Verifies a part by its checksum; or, if it was not read as a whole or is damaged, its blocks by theirs, after
  /// these.
  failure verify(slot& own, const needed_part& part) {
    const std::span<const std::byte> bytes = bytes_in(own, part);
    if (bytes.empty()) return {};
    if (own.is_read({part.at(), part.end()}) && crc32c().add(bytes).value() == part.stored->crc32c) return {};
    if (!own.has_checksums) {
      if (failure cause = read_checksums(own)) return cause;
    }
    const std::size_t before =
        static_cast<std::size_t>(part.stored->first_block - own.first_block) * sizeof(std::uint32_t);
    bootstrap::detail::blob_reader reader(own.checksums.bytes().subspan(before));
    std::vector<std::uint32_t> stated;
    joined_crc32c joined;
    for_each_block(part.at(), bytes.size(), [&](std::size_t, std::size_t length) {
      stated.push_back(reader.integer<std::uint32_t>());
      joined.add(stated.back(), length);
    });
    const std::size_t shard = part.stored->shard;
    if (joined.value() != part.stored->crc32c)
      return damaged(shard, own.checksums.at() + before, "the checksums of blocks");
    failure found;
    for_each_block(part.at(), bytes.size(), [&, next = stated.begin()](std::size_t begin, std::size_t length) mutable {
      const std::uint32_t wanted = *next++;
      const byte_range block{part.at() + begin, part.at() + begin + length};
      if (!found && own.is_read(block) && crc32c().add(bytes.subspan(begin, length)).value() != wanted)
        found = damaged(shard, block.begin, "a block of 4096 bytes");
    });
    return found;
  }

  failure damaged(std::size_t shard, std::uint64_t at, const char* what) const {
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path_of(shard), "' is damaged: ", what,
                                                                 " at byte ", at, " has a wrong checksum"}));
  }

  platform::file_system& files_;
  const std::string folder_;
  const manifest& from_;
  std::vector<platform::file_descriptor> opened_;
  std::vector<std::size_t> by_use_;  ///< files that may be open, the last one used last
  std::span<const reading> all_;
  std::size_t started_ = 0, finished_ = 0;
  std::array<slot, 3> slots_;  ///< last member, so that readings end before files are closed
};

}  // namespace detail

/// Returns why `held` can't be read from a checkpoint with these tensors; empty if it can.
inline std::string why_not_in(const tensor_index& from, const state_part& held) {
  using hocket::detail::concat;
  const tensor_description* const found = from.find(held.name);
  if (found == nullptr) return concat({"the checkpoint has no tensor '", held.name, "'"});
  if (found->type == held.type && found->extents == held.extents) return {};
  return concat({"tensor '", held.name, "' is ", name_of(found->type), " ", whole_of(found->extents).text(),
                 " in the checkpoint, and ", name_of(held.type), " ", whole_of(held.extents).text(), " here"});
}

namespace detail {

/// Returns the stored parts that ranks of the host need, in the order of the files and of the parts in them.
inline std::vector<needed_part> parts_needed(const manifest& from, std::span<const std::vector<state_part>> of_host) {
  std::map<std::string_view, std::vector<std::pair<std::size_t, std::size_t>>> wanted;  // by name: rank, part
  for (std::size_t rank = 0; rank < of_host.size(); ++rank) {
    for (std::size_t i = 0; i < of_host[rank].size(); ++i) wanted[of_host[rank][i].name].emplace_back(rank, i);
  }
  std::vector<needed_part> result;
  for (const tensor_description& tensor : from.tensors) {
    const auto parts = wanted.find(tensor.name);
    if (parts == wanted.end()) continue;
    for (const stored_part& stored : tensor.parts) {
      needed_part what{&tensor, &stored, {}};
      for (const auto& [rank, i] : parts->second) {
        rectangle region = intersection(stored.where, of_host[rank][i].where);
        if (!region.is_empty()) what.needs.push_back({rank, i, std::move(region)});
      }
      if (!what.needs.empty()) result.push_back(std::move(what));
    }
  }
  std::sort(result.begin(), result.end(), [](const needed_part& a, const needed_part& b) {
    return std::pair(a.stored->shard, a.at()) < std::pair(b.stored->shard, b.at());
  });
  return result;
}

/// Returns whether the checksums of both follow each other within `most` blocks, so that they can be read at once.
inline bool checksums_are_close(const reading& before, const needed_part& next, std::uint64_t most) {
  const std::uint64_t first = before.parts.front().stored->first_block, last = next.stored->first_block;
  return before.parts.back().stored->first_block <= last && last - first <= most;
}

/// Joins parts that are adjacent in a file, up to `most_bytes` bytes: so a block that has the end of one and the begin
/// of the next is read once.
inline std::vector<reading> readings_of(std::vector<needed_part> parts, std::uint64_t most_bytes) {
  std::vector<reading> result;
  for (needed_part& each : parts) {
    const bool continues = !result.empty() && result.back().shard() == each.stored->shard &&
                           each.at() >= result.back().end() && each.at() - result.back().end() < block_bytes &&
                           each.end() - result.back().at() <= most_bytes &&
                           checksums_are_close(result.back(), each, most_bytes);
    if (!continues) result.emplace_back();
    result.back().parts.push_back(std::move(each));
  }
  return result;
}

/// Which rank of a host reads what, in which order: for each rank its readings, with about equal bytes. A rank reads
/// only if it needs some of it.
inline std::vector<std::vector<reading>> plan_reads(const manifest& from,
                                                    std::span<const std::vector<state_part>> of_host) {
  constexpr std::uint64_t least_bytes = std::uint64_t{1} << 20;
  std::vector<needed_part> parts = parts_needed(from, of_host);
  std::uint64_t all = 0;
  for (const needed_part& each : parts) all += each.bytes();
  const std::uint64_t share = all / of_host.size() / 2;  // small readings would need more messages
  std::vector<std::vector<reading>> plan(of_host.size());
  std::vector<std::uint64_t> load(of_host.size());
  for (reading& each : readings_of(std::move(parts), std::clamp(share, least_bytes, most_part_bytes))) {
    const need* least = nullptr;
    for (const needed_part& part : each.parts) {
      for (const need& who : part.needs) {
        if (least == nullptr || load[who.rank] < load[least->rank]) least = &who;
      }
    }
    const std::size_t reader = least->rank;
    load[reader] += each.end() - each.at();
    plan[reader].push_back(std::move(each));
  }
  return plan;
}

}  // namespace detail

/// Reads and verifies all bytes of a checkpoint, and that its parts are each element of each tensor once. `folder` is
/// that of this checkpoint. Calls `on_progress` with the bytes verified so far. Returns the first failure, with the
/// file and the offset.
inline failure verify(platform::file_system& files, const std::string& folder, const manifest& from,
                      const std::function<void(std::uint64_t)>& on_progress = {}) {
  std::string problem = problem_with_parts(from);
  if (!problem.empty()) return make_failure(errc::corrupted, std::move(problem));
  std::vector<state_part> everything;
  for (const tensor_description& tensor : from.tensors)
    everything.push_back({tensor.name, tensor.type, tensor.extents, whole_of(tensor.extents)});
  const std::vector<detail::reading> all =
      detail::readings_of(detail::parts_needed(from, std::span(&everything, 1)), most_part_bytes);
  detail::part_reader reader(files, folder, from);
  std::uint64_t verified = 0;
  reader.start(all);
  for (const detail::reading& each : all) {
    if (failure cause = reader.finish()) return cause;
    verified += each.end() - each.at();
    if (on_progress) on_progress(verified);
  }
  return {};
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
