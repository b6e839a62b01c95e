// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The structure of the model: its sizes, and the list of its parameters.
///
/// A layer is a sum of *blocks*: an attention head, or a slice of the hidden units, with its input and output weights.
/// Tensor parallelism distributes whole blocks and never cuts one. So each parameter is complete on one rank, and
/// computations with it do not depend on the number of ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {

struct model_shape {
  int layers = 4;
  int width = 64;
  int heads = 4;     ///< also the number of slices of the hidden units
  int context = 64;  ///< positions of a sequence

  static constexpr int vocabulary = 256;  ///< bytes
  int head_width() const noexcept { return width / heads; }
  int hidden_slice() const noexcept { return 4 * width / heads; }
};

constexpr int most_layers = 1024, most_width = 1 << 16;

/// Returns the multiple of `step` nearest to `wanted`, at least `step` and at most `most`. Requires `most >= step`.
inline int nearest_multiple(int wanted, int step, int most) noexcept {
  return std::clamp((wanted + step / 2) / step, 1, most / step) * step;
}

/// Throws if sizes do not fit each other.
inline void check(const model_shape& shape) {
  if (shape.width % shape.heads != 0 || shape.width / shape.heads % 2 != 0) {
    throw std::invalid_argument("--width " + std::to_string(shape.width) + " over --heads " +
                                std::to_string(shape.heads) +
                                " must give an even number of elements per head, because rotary positions turn pairs: "
                                "the nearest valid value is --width " +
                                std::to_string(nearest_multiple(shape.width, 2 * shape.heads, most_width)));
  }
}

/// Kind of a parameter.
enum class kind {
  embedding,
  attention_gain,
  query_key_value,
  attention_out,
  hidden_gain,
  hidden_in,
  hidden_out,
  final_gain,
  scores
};

/// One parameter of the model, a matrix.
struct entry {
  kind what = kind::embedding;
  int layer = -1;
  int block = -1;  ///< a head, or a slice of the hidden units; -1: none, the parameter is on all tensor-parallel ranks
  int rows = 0;
  int columns = 0;

  std::size_t elements() const noexcept { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns); }
  bool is_gain() const noexcept {
    return what == kind::attention_gain || what == kind::hidden_gain || what == kind::final_gain;
  }
  std::string name() const {
    constexpr const char* names[] = {"embedding", "attention gain", "query, key, value", "attention out", "hidden gain",
                                     "hidden in", "hidden out",     "final gain",        "scores"};
    std::string text = names[static_cast<int>(what)];
    if (layer >= 0) text += " of layer " + std::to_string(layer);
    if (block >= 0) text += ", block " + std::to_string(block);
    return text;
  }
  /// Returns a unique number of the parameter, which does not depend on the rank that stores it.
  std::size_t identity() const noexcept {
    return (static_cast<std::size_t>(layer + 1) * 16 + static_cast<std::size_t>(what)) * 4096 +
           static_cast<std::size_t>(block + 1);
  }
};

/// The integers from `first` up to, but not including, `end`.
struct range {
  int first = 0;
  int end = 0;
  int size() const noexcept { return end - first; }
  bool contains(int i) const noexcept { return i >= first && i < end; }
};

/// Returns part `i` of `whole` items cut into `parts` contiguous parts, whose sizes differ by at most one.
inline range part_of(int whole, int i, int parts) noexcept { return {whole * i / parts, whole * (i + 1) / parts}; }

/// Returns the parameters of some layers, and of some blocks of each, in the order of the forward pass. The first layer
/// includes the embedding, the last one the final gain and the scores.
inline std::vector<entry> entries_of(const model_shape& shape, range layers, range blocks) {
  std::vector<entry> all;
  const int d = shape.width;
  if (layers.first == 0) all.push_back({kind::embedding, -1, -1, model_shape::vocabulary, d});
  for (int layer = layers.first; layer < layers.end; ++layer) {
    all.push_back({kind::attention_gain, layer, -1, 1, d});
    for (int b = blocks.first; b < blocks.end; ++b) {
      all.push_back({kind::query_key_value, layer, b, d, 3 * shape.head_width()});
      all.push_back({kind::attention_out, layer, b, shape.head_width(), d});
    }
    all.push_back({kind::hidden_gain, layer, -1, 1, d});
    for (int b = blocks.first; b < blocks.end; ++b) {
      all.push_back({kind::hidden_in, layer, b, d, shape.hidden_slice()});
      all.push_back({kind::hidden_out, layer, b, shape.hidden_slice(), d});
    }
  }
  if (layers.end == shape.layers) {
    all.push_back({kind::final_gain, -1, -1, 1, d});
    all.push_back({kind::scores, -1, -1, d, model_shape::vocabulary});
  }
  return all;
}

}  // namespace gpt
