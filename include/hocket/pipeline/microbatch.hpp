// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The part of a batch that belongs to a microbatch: for the first stage, which fetches its input, and for the last
/// one, which compares with targets.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <source_location>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

/// Returns the elements of `batch` that belong to `microbatch`: one of `microbatches` consecutive parts of equal size,
/// because activations have one size. Raises `invalid_argument` if the batch has no such parts, or not that one.
template <class T>
std::span<T> microbatch_of(std::span<T> batch, int microbatch, int microbatches,
                           const std::source_location& site = std::source_location::current()) {
  if (microbatches < 1 || microbatch < 0 || microbatch >= microbatches ||
      batch.size() % static_cast<std::size_t>(microbatches) != 0) {
    raise(errc::invalid_argument,
          hocket::detail::concat({"microbatch ", microbatch, " of ", microbatches, " can't be cut from a batch of ",
                                  batch.size(),
                                  " elements: pass a microbatch from 0 to microbatches - 1, and a batch whose "
                                  "size is a multiple of microbatches"}),
          {.operation = "pipeline", .site = site});
  }
  const std::size_t size = batch.size() / static_cast<std::size_t>(microbatches);
  return batch.subspan(static_cast<std::size_t>(microbatch) * size, size);
}

}  // namespace pipeline
HOCKET_END_NAMESPACE
