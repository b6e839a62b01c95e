// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What refers to a file of samples can't be made of a temporary one, whose bytes would be gone.
#include <hocket/data/indexed_dataset.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/mixed_sources.hpp>
#include <hocket/data/npy_file.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/tar_shards.hpp>
#include <hocket/data/text_lines.hpp>
#include <hocket/data/token_file.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace {

using namespace hocket::data;

template <class File>
concept has_samples = requires(File&& file) { std::forward<File>(file).samples(std::uint64_t{3}); };
template <class File>
concept has_tokens = requires(File&& file) { std::forward<File>(file).tokens(); };
template <class File>
concept has_sequences = requires(File&& file) { std::forward<File>(file).sequences(); };

static_assert(has_samples<token_file&> && has_samples<const token_file&>);
static_assert(!has_samples<token_file> && !has_samples<const token_file>);
static_assert(has_tokens<const token_file&> && !has_tokens<token_file> && !has_tokens<const token_file>);
static_assert(has_sequences<const indexed_dataset&> && !has_sequences<indexed_dataset>);

static_assert(std::constructible_from<token_samples, const token_array&, std::uint64_t>);
static_assert(!std::constructible_from<token_samples, token_array, std::uint64_t>);

static_assert(std::constructible_from<npy_rows<float>, npy_file&>);
static_assert(std::constructible_from<npy_rows<float>, const npy_file&>);
static_assert(!std::constructible_from<npy_rows<float>, npy_file>);
static_assert(!std::constructible_from<npy_rows<float>, const npy_file>);

template <class File>
concept has_bytes = requires(File&& file) { std::forward<File>(file).bytes(); };
template <class File>
concept has_row = requires(File&& file) { std::forward<File>(file).row(std::uint64_t{3}); };
template <class File>
concept has_header = requires(File&& file) { std::forward<File>(file).header(); };
template <class File>
concept has_line = requires(File&& file) { std::forward<File>(file).line(std::uint64_t{3}); };
template <class Tar>
concept has_sample = requires(Tar&& tar) { std::forward<Tar>(tar).sample(std::uint64_t{3}); };
template <class Source>
concept has_views = requires(Source&& source, typename std::remove_cvref_t<Source>::batch_type& to) {
  std::forward<Source>(source).append(std::uint64_t{3}, to);
};
template <class Loader>
concept has_epoch = requires(Loader&& batches) { std::forward<Loader>(batches).epoch(); };

static_assert(has_bytes<const opened_file&> && !has_bytes<opened_file> && !has_bytes<const opened_file>);
static_assert(has_row<const npy_file&> && !has_row<npy_file> && !has_row<const npy_file>);
static_assert(has_header<const npy_file&> && !has_header<npy_file> && !has_header<const npy_file>);
static_assert(has_line<const text_lines&> && !has_line<text_lines> && !has_line<const text_lines>);
static_assert(has_sample<const tar_shard&> && !has_sample<tar_shard> && !has_sample<const tar_shard>);
static_assert(has_sample<const tar_shards&> && !has_sample<tar_shards> && !has_sample<const tar_shards>);
static_assert(has_views<const text_lines&> && !has_views<text_lines> && !has_views<const text_lines>);
static_assert(has_views<const tar_shard&> && !has_views<tar_shard> && !has_views<const tar_shard>);
static_assert(has_views<const tar_shards&> && !has_views<tar_shards> && !has_views<const tar_shards>);
static_assert(has_epoch<loader<order, token_samples>&> && !has_epoch<loader<order, token_samples>>);

static_assert(std::constructible_from<line_index, std::string_view> &&
              std::constructible_from<line_index, const char*>);
static_assert(std::constructible_from<line_index, std::string&> &&
              std::constructible_from<line_index, const std::string&>);
static_assert(!std::constructible_from<line_index, std::string>);

using two_sources = mixed_sources<token_samples, token_samples>;
static_assert(std::constructible_from<two_sources, token_samples&, const token_samples&>);
static_assert(!std::constructible_from<two_sources, token_samples, token_samples&>);
static_assert(!std::constructible_from<two_sources, const token_samples&, token_samples>);
static_assert(!std::constructible_from<two_sources, const token_samples, const token_samples>);
static_assert(!std::constructible_from<mixed_sources<token_samples>, token_samples>);
static_assert(std::constructible_from<two_sources, two_sources> && std::constructible_from<two_sources, two_sources&>);

}  // namespace
