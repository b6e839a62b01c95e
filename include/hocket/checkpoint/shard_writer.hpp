// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Writes one rank's file of a checkpoint: a safetensors file with the parts that the rank writes, and the checksums of
/// their blocks as its last tensor.
#pragma once

#include <hocket/checkpoint/manifest.hpp>
#include <hocket/checkpoint/safetensors.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/checkpoint/write_plan.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/crc32c.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// Limits how many bytes are written per second, so that the program's own use of the storage stays fast.
class write_rate {
 public:
  /// @param bytes_per_second 0: no limit
  explicit write_rate(std::uint64_t bytes_per_second = 0) noexcept : limit_(bytes_per_second) {}

  /// Waits until `bytes` more may be written.
  void spend(std::size_t bytes) {
    if (limit_ == 0) return;
    const auto now = deadline::clock::now();
    next_ = std::max(next_, now);
    std::this_thread::sleep_until(next_);
    next_ += std::chrono::nanoseconds(
        static_cast<std::int64_t>(1e9 * static_cast<double>(bytes) / static_cast<double>(limit_)));
  }

 private:
  std::uint64_t limit_;
  deadline::clock::time_point next_{};
};

namespace detail {

/// Memory whose address permits direct access to files.
class aligned_buffer {
 public:
  explicit aligned_buffer(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new(bytes, alignment))), bytes_(bytes) {}

  std::span<std::byte> bytes() const noexcept { return {data_.get(), bytes_}; }

 private:
  static constexpr std::align_val_t alignment{platform::direct_access_bytes};
  struct release {
    void operator()(std::byte* data) const noexcept { ::operator delete(data, alignment); }
  };
  std::unique_ptr<std::byte, release> data_;
  std::size_t bytes_;
};

/// Returns the failure of a system call on a file.
inline failure file_failure(const char* what, const std::string& path, std::uint64_t offset, int error_number) {
  return platform::system_failure(hocket::detail::concat({"can't ", what, " '", path, "' at byte ", offset}),
                                  error_number);
}
inline failure file_failure(const char* what, const std::string& path, int error_number) {
  return platform::system_failure(hocket::detail::concat({"can't ", what, " '", path, "'"}), error_number);
}

/// Returns the failure of reading a file. What can't be read is damage, which another checkpoint may not have; unless
/// the process lacks descriptors or memory, which other checkpoints need as well.
inline failure read_failure(const char* what, const std::string& path, std::uint64_t offset, int error_number) {
  failure cause = file_failure(what, path, offset, error_number);
  const bool is_of_process = error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
  if (!is_of_process) cause.code = make_error_code(errc::corrupted);
  return cause;
}

/// Accesses to files of at least so many bytes run on a thread of their own, while the caller computes.
inline constexpr std::size_t least_bytes_for_thread = std::size_t{1} << 20;

/// Starts `act`, which accesses `bytes` bytes of a file and returns its failure. The result waits for it when it is
/// destroyed.
template <class Act>
std::future<failure> start_access(std::size_t bytes, Act act) {
  // Both: where no thread can be started, the access is made when its result is asked for.
  const auto how = std::launch::async | std::launch::deferred;
  return std::async(bytes < least_bytes_for_thread ? std::launch::deferred : how, std::move(act));
}

/// The memory through which a file is written. It is used for one file after the other, so that saves allocate none.
struct write_buffers {
  static constexpr std::size_t bytes = std::size_t{4} << 20;  ///< of each

  std::array<aligned_buffer, 3> all{aligned_buffer(bytes), aligned_buffer(bytes), aligned_buffer(bytes)};
};

/// A file that is written from its begin to its end, through buffers: while one is filled, up to two are written, so
/// that the storage always has work.
class buffered_writer {
 public:
  buffered_writer(platform::file_system& files, std::string path, write_rate& rate, write_buffers& buffers)
      : files_(files), path_(std::move(path)), rate_(rate), buffers_(buffers) {
    const int error = files_.open(path_, platform::file_use::create_directly, file_);
    if (error != 0) failure_ = file_failure("create", path_, error);
  }

  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !failure_) {
      const std::size_t count = std::min(bytes.size(), write_buffers::bytes - filled_);
      std::memcpy(buffers_.all[filling_].bytes().data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ == write_buffers::bytes) start_write();
    }
  }

  /// Writes what is left, and makes the file's bytes durable. Returns the first failure.
  failure finish() {
    if (filled_ > 0) start_write();
    for (std::size_t i = 0; i < writes_.size(); ++i) end_write((filling_ + i) % writes_.size());
    if (!failure_) {
      const int error = files_.sync(file_.get());
      if (error != 0) failure_ = file_failure("sync", path_, error);
    }
    file_.reset();
    return failure_;
  }

 private:
  void end_write(std::size_t buffer) {
    if (!writes_[buffer].valid()) return;
    failure cause = writes_[buffer].get();
    if (!failure_) failure_ = std::move(cause);
  }

  /// Starts to write the buffer that is filled, and waits for the oldest write, whose buffer is filled next.
  void start_write() {
    rate_.spend(filled_);
    const std::span<const std::byte> bytes = buffers_.all[filling_].bytes().first(filled_);
    writes_[filling_] = start_access(filled_, [this, bytes, at = offset_] { return write(bytes, at); });
    offset_ += filled_;
    filled_ = 0;
    filling_ = (filling_ + 1) % writes_.size();
    end_write(filling_);
  }

  failure write(std::span<const std::byte> rest, std::uint64_t at) {
    while (!rest.empty()) {
      std::size_t written = 0;
      const int error = files_.write(file_.get(), rest, at, written);
      if (error != 0) return file_failure("write", path_, at, error);
      at += written;
      rest = rest.subspan(written);
    }
    return {};
  }

  platform::file_system& files_;
  const std::string path_;
  write_rate& rate_;
  write_buffers& buffers_;
  platform::file_descriptor file_;
  std::size_t filling_ = 0;  ///< number of the buffer that is filled
  std::size_t filled_ = 0;   ///< bytes in it
  std::uint64_t offset_ = 0;
  failure failure_;
  std::array<std::future<failure>, 3> writes_;  ///< last member, so that writes end before the file is closed
};

}  // namespace detail

/// A part of a file, and where its bytes are in memory.
struct source_part {
  const state_part* of;
  rectangle where;
  std::span<const std::byte> bytes;
};

/// Divides ranges of a rank's parts into rectangles of limited size.
inline std::vector<source_part> source_parts(const std::vector<state_part>& held,
                                             const std::vector<written_range>& ranges) {
  std::vector<source_part> result;
  for (const written_range& range : ranges) {
    const state_part& of = held[range.part];
    const std::uint64_t element = bytes_of(of.type);
    if (range.count == 0) result.push_back({&of, whole_of(of.extents), {}});
    for (std::uint64_t first = range.first, end = range.first + range.count; first < end;) {
      const std::uint64_t count = std::min(end - first, most_part_bytes / element);
      std::uint64_t at = first;
      for (rectangle& each : rectangles_of_range(of.where, first, count)) {
        const std::uint64_t elements = each.volume();
        result.push_back(
            {&of, std::move(each), {of.data + at * element, static_cast<std::size_t>(elements * element)}});
        at += elements;
      }
      first += count;
    }
  }
  return result;
}

namespace detail {

/// Calls `visit(begin, bytes)` for each block of a part of `length` bytes at offset `at` of a file; `begin` counts from
/// `at`.
template <class Visit>
void for_each_block(std::uint64_t at, std::size_t length, Visit visit) {
  auto bytes = static_cast<std::size_t>(block_bytes - at % block_bytes);
  for (std::size_t begin = 0; begin < length; begin += bytes, bytes = block_bytes) {
    bytes = std::min(bytes, length - begin);
    visit(begin, bytes);
  }
}

/// The checksum of a part, from those of its blocks.
class joined_crc32c {
 public:
  void add(std::uint32_t block, std::size_t bytes) noexcept {
    value_ = (bytes == block_bytes ? whole_ : crc32c_of_pieces(bytes)).joined(value_, block);
  }
  std::uint32_t value() const noexcept { return value_; }

 private:
  static constexpr crc32c_of_pieces whole_{block_bytes};
  std::uint32_t value_ = 0;
};

/// The header of a file with these parts, and of `blocks` checksums at its end.
inline safetensors_header header_of(const std::vector<source_part>& parts, std::uint64_t blocks) {
  safetensors_header result;
  std::uint64_t at = 0;
  for (const source_part& each : parts) {
    const bool is_whole = each.where == whole_of(each.of->extents);
    const std::string name = is_whole ? each.of->name : hocket::detail::concat({each.of->name, each.where.text()});
    result.tensors.push_back({name, each.of->type, each.where.size, at, at + each.bytes.size()});
    at += each.bytes.size();
  }
  result.tensors.push_back({std::string(blocks_tensor), element_type::u32, {blocks}, at, at + 4 * blocks});
  return result;
}

}  // namespace detail

/// Writes parts into a new file, and makes it durable. Adds the file and its parts to `result`, in which the file's
/// number is that of the last one. Returns the failure, with the file and the offset.
inline failure write_shard(platform::file_system& files, const std::string& folder, const std::string& name,
                           const std::vector<source_part>& parts, write_rate& rate, detail::write_buffers& buffers,
                           manifest& result) {
  std::uint64_t blocks = 0, end = 0;  // the first part begins at a multiple of a block
  for (const auto& each : parts) {
    blocks += blocks_of(end, each.bytes.size());
    end += each.bytes.size();
  }
  const safetensors_header header = detail::header_of(parts, blocks);
  const std::string front = encode_safetensors_header(header, platform::direct_access_bytes);
  const std::uint64_t data_at = front.size();
  detail::buffered_writer file(files, folder + '/' + name, rate, buffers);
  file.add(std::as_bytes(std::span(front)));
  result.shards.push_back({name, data_at + header.tensors.back().end, data_at + header.tensors.back().begin});
  manifest_builder tensors(result);
  bootstrap::blob checksums;  // little-endian
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const source_part& part = parts[i];
    const std::uint64_t first_block = checksums.size() / sizeof(std::uint32_t);
    const std::uint64_t part_at = data_at + header.tensors[i].begin;
    detail::joined_crc32c all;
    detail::for_each_block(part_at, part.bytes.size(), [&](std::size_t at, std::size_t bytes) {
      const auto block = part.bytes.subspan(at, bytes);
      const std::uint32_t one = crc32c().add(block).value();
      bootstrap::detail::append_integer(checksums, one);
      all.add(one, bytes);
      file.add(block);
    });
    tensors.tensor(part.of->name, part.of->type, part.of->extents)
        .parts.push_back({result.shards.size() - 1, part.where, part_at, all.value(), first_block});
  }
  file.add(checksums);
  return file.finish();
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
