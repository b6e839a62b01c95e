// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads what a host's ranks need of a checkpoint, on any mesh: the intersections of the rectangles in files with those that
/// the ranks hold. Each byte is read by one rank of the host, which sends it to the others that need it; every byte that is
/// used is verified.
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
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
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
struct reading {
  const tensor_description* tensor;
  const stored_part* part;
  std::vector<need> needs;  ///< by rank
};

/// Blocks `first` to `end`, excluded, of a part.
struct block_range {
  std::uint64_t first;
  std::uint64_t end;
};

/// Returns the blocks of a part that have elements of the regions, in ascending order and without gaps in a range.
inline std::vector<block_range> blocks_needed(const reading& of) {
  std::vector<block_range> ranges;
  const rectangle& where = of.part->where;
  const std::uint64_t element = bytes_of(of.tensor->type);
  for (const need& each : of.needs) {
    for_each_run(each.region, where, where, [&](const sizes_type& at, std::uint64_t run) {
      const std::uint64_t begin = offset_in(where, at) * element, end = begin + run * element;
      const block_range blocks{begin / block_bytes, blocks_of(end)};
      if (!ranges.empty() && ranges.back().first <= blocks.first && blocks.first <= ranges.back().end)
        ranges.back().end = std::max(ranges.back().end, blocks.end);
      else ranges.push_back(blocks);
    });
  }
  std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<block_range> joined;
  for (const block_range& each : ranges) {
    if (!joined.empty() && each.first <= joined.back().end) joined.back().end = std::max(joined.back().end, each.end);
    else joined.push_back(each);
  }
  return joined;
}

/// Reads and verifies parts of a checkpoint's files.
class part_reader {
 public:
  part_reader(platform::file_system& files, std::string folder, const manifest& from)
      : files_(files), folder_(std::move(folder)), from_(from), opened_(from.shards.size()) {}

  /// Reads the blocks of a part that are needed, and verifies them. `bytes()` has the part then, with undefined bytes in
  /// the blocks that are not needed.
  failure read(const reading& what) {
    const stored_part& part = *what.part;
    const std::uint64_t length = what.tensor->bytes_in(part.where), blocks = blocks_of(length);
    if (failure cause = open(part.shard)) return cause;
    if (length == 0) return {};
    const std::vector<block_range> needed = blocks_needed(what);
    part_.reset(static_cast<std::size_t>(part.at), static_cast<std::size_t>(length));
    for (const block_range& each : needed) {
      const std::uint64_t begin = each.first * block_bytes, end = std::min(each.end * block_bytes, length);
      if (failure cause = read_into(part_, part.shard, begin, end)) return cause;
    }
    const bool is_whole = needed.size() == 1 && needed[0].end - needed[0].first == blocks;
    if (is_whole && crc32c().add(part_.bytes()).value() == part.crc32c) return {};
    return verify(part, needed, length);
  }

  std::span<const std::byte> bytes() const noexcept { return part_.bytes(); }

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

  /// A file that is missing or can't be read is damage, which another checkpoint may not have.
  static failure read_failure(const char* what, const std::string& path, std::uint64_t at, int error) {
    failure cause = file_failure(what, path, at, error);
    if (error == ENOENT || error == EIO) cause.code = make_error_code(errc::corrupted);
    return cause;
  }

  std::string path_of(std::size_t shard) const { return folder_ + '/' + from_.shards[shard].file; }

  failure open(std::size_t shard) {
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

  /// Verifies the blocks that are needed by their own checksums, after these.
  failure verify(const stored_part& part, const std::vector<block_range>& needed, std::uint64_t length) {
    const shard_file& shard = from_.shards[part.shard];
    const std::uint64_t blocks = blocks_of(length);
    const std::uint64_t at = shard.blocks_at + part.first_block * sizeof(std::uint32_t);
    checksums_.reset(static_cast<std::size_t>(at), static_cast<std::size_t>(blocks * sizeof(std::uint32_t)));
    if (failure cause = read_into(checksums_, part.shard, 0, blocks * sizeof(std::uint32_t))) return cause;
    bootstrap::detail::blob_reader reader(checksums_.bytes());
    const crc32c_of_pieces full(block_bytes), tail(length - (blocks - 1) * block_bytes);
    std::vector<std::uint32_t> stated;
    std::uint32_t joined = 0;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      stated.push_back(reader.integer<std::uint32_t>());
      joined = (i + 1 < blocks ? full : tail).joined(joined, stated.back());
    }
    if (joined != part.crc32c) return damaged(part.shard, at, "the checksums of blocks");
    for (const block_range& range : needed) {
      for (std::uint64_t i = range.first; i < range.end; ++i) {
        const std::uint64_t begin = i * block_bytes, end = std::min(begin + block_bytes, length);
        const auto block =
            part_.bytes().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        if (crc32c().add(block).value() != stated[i])
          return damaged(part.shard, part.at + begin, "a block of 4096 bytes");
      }
    }
    return {};
  }

  failure damaged(std::size_t shard, std::uint64_t at, const char* what) const {
    return make_failure(errc::corrupted, hocket::detail::concat({"'", path_of(shard), "' is damaged: ", what,
                                                                 " at byte ", at, " has a wrong checksum"}));
  }

  platform::file_system& files_;
  const std::string folder_;
  const manifest& from_;
  std::vector<platform::file_descriptor> opened_;
  window part_, checksums_;
};

}  // namespace detail

/// Returns why `held` can't be read from `from`; empty if it can.
inline std::string why_not_in(const manifest& from, const state_part& held) {
  using hocket::detail::concat;
  const tensor_description* const found = from.find(held.name);
  if (found == nullptr) return concat({"the checkpoint has no tensor '", held.name, "'"});
  if (found->type != held.type || found->extents != held.extents) {
    return concat({"tensor '", held.name, "' is ", name_of(found->type), " ", whole_of(found->extents).text(),
                   " in the checkpoint, and ", name_of(held.type), " ", whole_of(held.extents).text(), " here"});
  }
  std::uint64_t covered = 0;
  for (const stored_part& each : found->parts) covered += intersection(each.where, held.where).volume();
  if (covered == held.where.volume()) return {};
  return concat({"the checkpoint has ", covered, " of the ", held.where.volume(), " elements ", held.where.text(),
                 " of tensor '", held.name, "'"});
}

namespace detail {

/// Which rank of a host reads which parts, in which order: for each rank its readings.
inline std::vector<std::vector<reading>> plan_reads(const manifest& from,
                                                    std::span<const std::vector<state_part>> of_host) {
  std::map<std::string_view, std::vector<std::pair<std::size_t, std::size_t>>> wanted;  // by name: rank, part
  for (std::size_t rank = 0; rank < of_host.size(); ++rank) {
    for (std::size_t i = 0; i < of_host[rank].size(); ++i) wanted[of_host[rank][i].name].emplace_back(rank, i);
  }
  std::vector<std::vector<reading>> plan(of_host.size());
  std::vector<std::uint64_t> load(of_host.size());
  for (const tensor_description& tensor : from.tensors) {
    const auto parts = wanted.find(tensor.name);
    if (parts == wanted.end()) continue;
    for (const stored_part& part : tensor.parts) {
      reading what{&tensor, &part, {}};
      for (const auto& [rank, i] : parts->second) {
        rectangle region = intersection(part.where, of_host[rank][i].where);
        if (!region.is_empty()) what.needs.push_back({rank, i, std::move(region)});
      }
      if (what.needs.empty()) continue;
      const auto least = std::min_element(what.needs.begin(), what.needs.end(),
                                          [&](const need& a, const need& b) { return load[a.rank] < load[b.rank]; });
      const std::size_t reader = least->rank;
      load[reader] += tensor.bytes_in(part.where);
      plan[reader].push_back(std::move(what));
    }
  }
  return plan;
}

}  // namespace detail

/// Reads and verifies all bytes of a checkpoint, and that its parts are each element of each tensor once. `folder` is that of
/// this checkpoint. Calls `on_progress` with the bytes verified so far. Returns the first failure, with the file and the
/// offset.
inline failure verify(platform::file_system& files, const std::string& folder, const manifest& from,
                      const std::function<void(std::uint64_t)>& on_progress = {}) {
  detail::part_reader reader(files, folder, from);
  std::uint64_t verified = 0;
  for (const tensor_description& tensor : from.tensors) {
    std::uint64_t elements = 0;
    for (const stored_part& part : tensor.parts) {
      elements += part.where.volume();
      if (failure cause = reader.read({&tensor, &part, {{0, 0, part.where}}})) return cause;
      verified += tensor.bytes_in(part.where);
      if (on_progress) on_progress(verified);
    }
    const std::uint64_t all = volume_of(tensor.extents).value_or(0);
    if (elements == all) continue;
    return make_failure(errc::corrupted, hocket::detail::concat({"the parts of tensor '", tensor.name, "' have ",
                                                                 elements, " elements instead of ", all}));
  }
  return {};
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
