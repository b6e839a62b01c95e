// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The baseline that the trained model must beat: counted probabilities of a byte given the previous one.
#pragma once

#include "text.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpt {

/// Counts of pairs with Witten-Bell smoothing: if `kinds` different bytes follow byte `a` in the text, the probability
/// of a new one is kinds / (kinds + count of a), and it is distributed by the frequencies of bytes (with add-one
/// smoothing). It has no parameters to tune.
class bigram_model {
 public:
  explicit bigram_model(byte_span text) : pairs_(256 * 256), followers_(256), kinds_(256), bytes_(256) {
    for (const std::uint8_t byte : text) bytes_[byte] += 1;
    for (std::size_t i = 1; i < text.size(); ++i) {
      double& pair = pairs_[text[i - 1] * std::size_t{256} + text[i]];
      if (pair == 0) kinds_[text[i - 1]] += 1;
      pair += 1;
      followers_[text[i - 1]] += 1;
    }
    total_ = static_cast<double>(text.size());
  }

  /// Returns the probability that `next` follows `byte`: positive, and the sum over all `next` is 1.
  double probability(std::uint8_t byte, std::uint8_t next) const {
    const double plain = (bytes_[next] + 1) / (total_ + 256);
    const double seen = followers_[byte] + kinds_[byte];
    if (seen == 0) return plain;
    return (pairs_[byte * std::size_t{256} + next] + kinds_[byte] * plain) / seen;
  }

  /// Returns the cross entropy in nats per byte over the bytes of `text` from number `first` (at least 1) on.
  double loss(byte_span text, std::size_t first) const {
    double sum = 0;
    for (std::size_t i = first; i < text.size(); ++i) sum -= std::log(probability(text[i - 1], text[i]));
    return sum / static_cast<double>(text.size() - first);
  }

 private:
  std::vector<double> pairs_;      // [byte][next]
  std::vector<double> followers_;  // how often a byte has a successor
  std::vector<double> kinds_;      // how many different successors
  std::vector<double> bytes_;
  double total_ = 0;
};

}  // namespace gpt
