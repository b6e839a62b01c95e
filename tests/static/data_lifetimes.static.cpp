// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What refers to a file of samples can't be made of a temporary one, whose bytes would be gone.
#include <hocket/data/indexed_dataset.hpp>
#include <hocket/data/npy_file.hpp>
#include <hocket/data/token_file.hpp>

#include <concepts>
#include <cstdint>
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

}  // namespace
