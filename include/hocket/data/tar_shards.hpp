// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tar files of samples, as WebDataset has them, read by offset. `hocket-data index SHARD.tar` writes the index
/// SHARD.tar.index that this needs; see data/tar_index.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/tar_index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// A file of a sample. Valid as long as the shards that it is from.
struct sample_file {
  std::string_view kind;
  std::span<const std::byte> bytes;
};

/// A sample of a tar file.
struct tar_sample {
  std::string_view key;
  std::vector<sample_file> files;  ///< in the order of the tar file

  /// Returns the bytes of the file of this kind; none if there is no such file.
  std::span<const std::byte> find(std::string_view kind) const noexcept {
    for (const sample_file& each : files) {
      if (each.kind == kind) return each.bytes;
    }
    return {};
  }
};

/// Reads an index that `hocket-data` has written. Raises `corrupted` if it is damaged.
inline tar_index read_tar_index(const opened_file& file) {
  tar_index result;
  const std::string problem = read_tar_index(detail::text_of(file.bytes()), result);
  if (!problem.empty()) raise(errc::corrupted, hocket::detail::concat({"'", file.name(), "': ", problem}));
  return result;
}

/// One tar file, and its index.
class tar_shard {
 public:
  using batch_type = std::vector<tar_sample>;  ///< views of the file: valid as long as this object

  /// Raises `corrupted` if the index belongs to another file.
  tar_shard(opened_file tar, std::shared_ptr<const tar_index> index) : tar_(std::move(tar)), index_(std::move(index)) {
    if (index_->bytes == tar_.bytes().size()) return;
    raise(errc::corrupted, hocket::detail::concat({"'", tar_.name(), "' has ", tar_.bytes().size(),
                                                   " bytes, and its index is of a file of ", index_->bytes,
                                                   ": run hocket-data index again"}));
  }

  /// Returns the number of samples.
  std::uint64_t size() const noexcept { return index_->samples.size(); }

  /// Returns a sample, which must exist. It refers to this object.
  tar_sample sample(std::uint64_t number) const& {
    const indexed_sample& found = index_->samples[static_cast<std::size_t>(number)];
    tar_sample result{found.key, {}};
    for (const indexed_file& each : found.files)
      result.files.push_back({each.kind, tar_.bytes().subspan(each.at, each.bytes)});
    return result;
  }
  tar_sample sample(std::uint64_t number) const&& = delete;

  void append(std::uint64_t number, batch_type& to) const& { to.push_back(sample(number)); }
  void append(std::uint64_t number, batch_type& to) const&& = delete;

 private:
  opened_file tar_;
  std::shared_ptr<const tar_index> index_;
};

/// Tar files, mapped into memory. They must not become shorter while the object exists. The samples of a file follow
/// those of the file before.
class tar_shards {
 public:
  using batch_type = tar_shard::batch_type;

  /// Opens the files with these names, and the index of each, which has the same name and ".index" after it. Raises
  /// `system` if one of them can't be mapped, and `corrupted` if an index is damaged or belongs to another file.
  explicit tar_shards(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      opened_file tar = open_file(path);
      shards_.emplace_back(std::move(tar),
                           std::make_shared<const tar_index>(read_tar_index(open_file(path + ".index"))));
      ends_.push_back(size() + shards_.back().size());
    }
  }

  /// Returns the number of samples.
  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  /// Returns the number of samples of each file, for `listed_shards`.
  std::vector<std::uint64_t> sizes() const {
    std::vector<std::uint64_t> result;
    for (const tar_shard& each : shards_) result.push_back(each.size());
    return result;
  }

  /// Returns a sample, which refers to this object. Raises `invalid_argument` if there is no such sample.
  tar_sample sample(std::uint64_t number) const& {
    if (number >= size())
      raise(errc::invalid_argument,
            hocket::detail::concat({"sample ", number, " is asked for, and there are ", size()}));
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), number);
    const tar_shard& in = shards_[static_cast<std::size_t>(end - ends_.begin())];
    return in.sample(number + in.size() - *end);
  }
  tar_sample sample(std::uint64_t number) const&& = delete;

  /// Adds a sample to a batch. Raises as `sample`. Reads no file: that happens when its bytes are used.
  void append(std::uint64_t number, batch_type& to) const& { to.push_back(sample(number)); }
  void append(std::uint64_t number, batch_type& to) const&& = delete;

 private:
  std::vector<tar_shard> shards_;
  std::vector<std::uint64_t> ends_;  ///< numbers of samples up to the end of each file
};

}  // namespace data
HOCKET_END_NAMESPACE
