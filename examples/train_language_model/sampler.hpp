// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lets a trained model write.
#pragma once

#include "model.hpp"
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace language_model {

/// Draws a byte from the softmax of `scores` / `temperature`: below 1 the likelier bytes become likelier still.
inline std::uint8_t draw_byte(std::span<const float> scores, double temperature, double random) {
  const float highest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> weights;
  double total = 0;
  for (const float score : scores) {
    weights.push_back(std::exp(static_cast<double>(score - highest) / temperature));
    total += weights.back();
  }
  double left = random * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return static_cast<std::uint8_t>(i);
  }
  return static_cast<std::uint8_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

/// Continues `prompt`, of which the last `network.window()` bytes count (it must have as many), by `count` bytes.
inline std::string write_text(model& network, byte_span prompt, std::size_t count, double temperature,
                              std::uint64_t seed) {
  std::vector<std::uint8_t> text(prompt.begin(), prompt.end());
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const float> scores = network.scores(byte_span(text).last(network.window()));
    text.push_back(draw_byte(scores, temperature, uniform(mix(mix(seed) ^ i))));
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), text.end()};
}

/// `text` with everything that a terminal could stumble over replaced by '?': control characters and broken UTF-8.
inline std::string printable(const std::string& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length = byte(i) >= 0xf0 ? 4 : byte(i) >= 0xe0 ? 3 : byte(i) >= 0xc2 ? 2 : 1;
    bool good = length > 1 ? byte(i) < 0xf5 : byte(i) == '\n' || (byte(i) >= 0x20 && byte(i) < 0x7f);
    for (std::size_t k = 1; k < length && good; ++k) good = i + k < text.size() && (byte(i + k) & 0xc0) == 0x80;
    if (!good) length = 1;
    result += good ? text.substr(i, length) : "?";
    i += length;
  }
  return result;
}

}  // namespace language_model
