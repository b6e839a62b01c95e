// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sets of remote files of samples, of tokens and of tar files, for `group_reader`.
///
/// @code
/// hocket::data::remote_token_shards shards(cache, names, 1024);  // 1024 tokens for each sample
/// const hocket::data::order order(hocket::data::listed_shards{shards.sizes(), 4}, seed);
/// const hocket::data::group_reader samples(shards, order, {local_rank, local_ranks});
/// hocket::data::loader batches(order, samples, hocket::data::share(comm), {.batch = 512});
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/data/cache/file_cache.hpp>
#include <hocket/data/cache/group_reader.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/tar_index.hpp>
#include <hocket/data/tar_shards.hpp>
#include <hocket/data/token_file.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// One file of tokens, divided into samples.
class token_shard {
 public:
  using batch_type = token_samples::batch_type;

  token_shard(opened_file file, std::uint64_t length, token_type type)
      : tokens_(std::move(file), type), samples_(tokens_.samples(length)) {}

  void append(std::uint64_t sample, batch_type& to) const { samples_.append(sample, to); }

 private:
  token_file tokens_;
  token_samples samples_;
};

/// Remote files of tokens, each of which is divided into samples of `length` tokens and the token after them. The cache
/// must outlive the object. All ranks must pass equal arguments.
class remote_token_shards {
 public:
  using shard_type = token_shard;

  /// Asks the source of the cache for the lengths of the files, one after the other; with many files, let one rank call
  /// `file_cache::describe`, and pass what it returns. Raises as that, and `invalid_argument` if `length` is 0.
  remote_token_shards(file_cache& cache, const std::vector<std::string>& names, std::uint64_t length,
                      token_type type = token_type::u16)
      : remote_token_shards(cache, cache.describe(names), length, type) {}
  remote_token_shards(file_cache& cache, std::vector<remote_file> files, std::uint64_t length,
                      token_type type = token_type::u16)
      : cache_(cache), files_(std::move(files)), length_(length), type_(type) {
    if (length == 0) raise(errc::invalid_argument, "a sample must have at least one token");
    for (const remote_file& each : files_) {
      const std::uint64_t tokens = each.bytes / bytes_of(type);
      sizes_.push_back(tokens == 0 ? 0 : (tokens - 1) / length);
    }
  }

  file_cache& cache() const noexcept { return cache_; }
  const std::vector<remote_file>& files() const noexcept { return files_; }
  /// Returns the number of samples of each file, for `listed_shards`.
  const std::vector<std::uint64_t>& sizes() const noexcept { return sizes_; }

  /// Raises as `token_file`.
  std::shared_ptr<const token_shard> open(std::size_t, opened_file file) const {
    return std::make_shared<const token_shard>(std::move(file), length_, type_);
  }

 private:
  file_cache& cache_;
  std::vector<remote_file> files_;
  std::uint64_t length_;
  token_type type_;
  std::vector<std::uint64_t> sizes_;
};

/// Remote tar files, and the index of each, which has the same name and ".index" after it. The cache must outlive the
/// object. All ranks must pass equal arguments.
class remote_tar_shards {
 public:
  using shard_type = tar_shard;

  /// Reads all indices, through the cache, and keeps them in memory. Raises as `file_cache::open`, and `corrupted` if
  /// an index is damaged or of a file of another length.
  remote_tar_shards(file_cache& cache, const std::vector<std::string>& names)
      : cache_(cache), files_(cache.describe(names)) {
    for (const remote_file& each : files_) {
      indices_.push_back(std::make_shared<const tar_index>(read_tar_index(cache.open(each.name + ".index"))));
      sizes_.push_back(indices_.back()->samples.size());
    }
  }

  file_cache& cache() const noexcept { return cache_; }
  const std::vector<remote_file>& files() const noexcept { return files_; }
  /// Returns the number of samples of each file, for `listed_shards`.
  const std::vector<std::uint64_t>& sizes() const noexcept { return sizes_; }

  /// Raises as `tar_shard`.
  std::shared_ptr<const tar_shard> open(std::size_t shard, opened_file file) const {
    return std::make_shared<const tar_shard>(std::move(file), indices_[shard]);
  }

 private:
  file_cache& cache_;
  std::vector<remote_file> files_;
  std::vector<std::shared_ptr<const tar_index>> indices_;
  std::vector<std::uint64_t> sizes_;
};

}  // namespace data
HOCKET_END_NAMESPACE
