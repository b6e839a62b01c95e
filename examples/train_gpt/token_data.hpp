// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Training data in files of tokens, instead of the first part of the text: each sequence is used once per epoch of its
/// file, whatever the mesh, and files are mixed by weights. Batches are read ahead in the background.
#pragma once

#include "text.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpt {

class token_data {
 public:
  /// Maps files of 16-bit tokens: each of `files` is "PATH", or "PATH=WEIGHT" for another weight than 1. Throws if one can't
  /// be read, or has fewer tokens than a sequence.
  /// @param context number of tokens that a sequence predicts; it has one more
  token_data(const std::vector<std::string>& files, int context, std::uint64_t seed);
  ~token_data();

  /// Returns the number of sequences of each file and its weight: "1000 x 3, 500 x 1".
  const std::string& description() const noexcept;

  /// Reads the batch of step `number` of this rank; the batches after it are read ahead. Waits if it is not ready. Throws if a
  /// token is not a byte.
  /// @param rank of `ranks` data-parallel ranks, which divide `sequences` sequences
  void begin_step(int number, int sequences, int rank, int ranks);
  /// Returns sequence `i` of this rank in the step.
  byte_span sequence(std::size_t i) const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace gpt
