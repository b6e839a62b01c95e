// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the model consists of: its sizes, and the list of its parameters.
///
/// A layer is a sum of *blocks*: an attention head, or a slice of the hidden units, with the weights that lead into it
/// and out of it. A block is what tensor parallelism deals out, and never cuts. So each parameter is whole on one rank,
/// and what is computed with it does not depend on how many ranks there are.
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
  int heads = 4;     ///< and as many slices of the hidden units
  int context = 64;  ///< positions that a sequence has

  static constexpr int vocabulary = 256;  ///< bytes
  int head_width() const noexcept { return width / heads; }
  int hidden_slice() const noexcept { return 4 * width / heads; }
};

constexpr int most_layers = 1024, most_width = 1 << 16;

/// The multiple of `step` that is nearest to `wanted`, from `step` on and not above `most`, which is no less.
inline int nearest_multiple(int wanted, int step, int most) noexcept {
  return std::clamp((wanted + step / 2) / step, 1, most / step) * step;
}

/// Raises where sizes do not fit each other.
inline void check(const model_shape& shape) {
  if (shape.width % shape.heads != 0 || shape.width / shape.heads % 2 != 0) {
    throw std::invalid_argument("--width " + std::to_string(shape.width) + " over --heads " +
                                std::to_string(shape.heads) +
                                " must be a whole, even number of elements per head, as rotary positions turn pairs: "
                                "the nearest that is: --width " +
                                std::to_string(nearest_multiple(shape.width, 2 * shape.heads, most_width)));
  }
}

/// What a parameter is.
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
  int block = -1;  ///< a head, or a slice of the hidden units; -1: the whole layer has it, on all tensor-parallel ranks
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
  /// A number that no other parameter has: what it is, wherever it lies.
  std::size_t identity() const noexcept {
    return (static_cast<std::size_t>(layer + 1) * 16 + static_cast<std::size_t>(what)) * 4096 +
           static_cast<std::size_t>(block + 1);
  }
};

/// From `first` up to, and without, `end`.
struct range {
  int first = 0;
  int end = 0;
  int size() const noexcept { return end - first; }
  bool contains(int i) const noexcept { return i >= first && i < end; }
};

/// Part `i` of `whole` things cut into `parts`: contiguous, and as large as any other or larger by one.
inline range part_of(int whole, int i, int parts) noexcept { return {whole * i / parts, whole * (i + 1) / parts}; }

/// The parameters of some layers, and some blocks of each, in the order of the forward pass. The first layer comes with
/// the embedding, the last one with what turns activations into scores.
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
