// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The training text: reads it from a file, divides it into a part for training and a held-out part, and draws the
/// sequences of each step's global batch from the former.
#pragma once

#include <hocket/core/platform/input_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {

using byte_span = std::span<const std::uint8_t>;

/// Reads the text, which must be a regular file: every rank reads it, and a pipe yields its content only once.
inline std::vector<std::uint8_t> read_text(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 30;  // every rank stores the whole text
  std::string text;
  const std::string problem =
      hocket::platform::read_whole(path, hocket::platform::file_kinds::regular, most_bytes, text);
  if (!problem.empty()) {
    throw std::runtime_error("cannot read the text '" + path + "': " + problem +
                             "; pass a regular file of text with --text FILE: './dev demo' unpacks one to "
                             "build/text/jargon.txt");
  }
  if (text.size() > 1 && text[0] == '\x1f' && text[1] == '\x8b') {
    throw std::runtime_error("the text '" + path + "' is compressed: unpack it first, with 'gzip -d'");
  }
  return {text.begin(), text.end()};
}

/// A text in two parts. The second is not used for training.
struct split_text {
  byte_span train;
  byte_span held_out;
};

/// Holds out the last twentieth.
inline split_text split(byte_span text) {
  const std::size_t held_out = text.size() / 20;
  return {text.first(text.size() - held_out), text.last(held_out)};
}

/// Cuts `text` into consecutive sequences of `targets` bytes to predict, each preceded by the `window` bytes that its
/// first prediction depends on. The last sequence may be shorter. The first `window` bytes of `text` are not predicted.
inline std::vector<byte_span> consecutive_sequences(byte_span text, std::size_t window, std::size_t targets) {
  std::vector<byte_span> sequences;
  for (std::size_t first = window; first < text.size(); first += targets) {
    const std::size_t count = std::min(targets, text.size() - first);
    sequences.push_back(text.subspan(first - window, window + count));
  }
  return sequences;
}

/// Hashes the input with the finalizer of SplitMix64: random numbers without state, so that any rank can draw any
/// number independently.
constexpr std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

/// Returns a number uniform in [0, 1) with 24 random bits, so that a float represents it exactly.
constexpr double uniform(std::uint64_t random) noexcept { return static_cast<double>(random >> 40) * 0x1p-24; }

/// Returns sequence number `index` of the global batch of `step`. It depends only on the arguments, not on the number
/// of ranks that share the batch.
inline byte_span draw_sequence(byte_span text, std::size_t window, std::size_t targets, std::uint64_t seed,
                               std::uint64_t step, std::uint64_t index) {
  const std::size_t length = window + targets;
  const std::uint64_t random = mix(mix(mix(seed) ^ step) ^ index);
  return text.subspan(static_cast<std::size_t>(random % (text.size() - length + 1)), length);
}

}  // namespace gpt
