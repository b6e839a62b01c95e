// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One layer of the model: attention, then a hidden layer of squared rectifiers, each on normalised activations and
/// added to its input. Both are sums over blocks, which are distributed over tensor-parallel ranks. The layer
/// communicates by summing over the ranks: before each of the two additions in the forward pass, and after each in the
/// backward pass.
///
/// With sequence parallelism each tensor-parallel rank has some rows of the activations between blocks: rows are
/// gathered before the blocks, and sums are scattered after them. Each rank stores and normalises only a part; traffic
/// grows by a quarter, because the input of the blocks is not stored whole, but gathered again for the backward pass.
/// Source: Korthikanti et al., 2022.
#pragma once

#include "mathematics.hpp"
#include "memory.hpp"
#include "shape.hpp"

#include <hocket/operation/exact_sum.hpp>
#include <hocket/ucx.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace gpt {

/// Sums the outputs of blocks on this rank and on all tensor-parallel ranks: as floats, or rounded only at the end,
/// with the same bits for every distribution of the blocks.
class block_sum {
 public:
  /// @param ranks the tensor-parallel ranks; null: this rank has all blocks
  /// @param spread whether each of them has some of the rows (sequence parallelism); not with `exact`
  block_sum(const hocket::ucx::communicator* ranks, bool exact, bool spread = false)
      : ranks_(ranks), exact_(exact), spread_(spread && ranks != nullptr) {}

  void begin(Index rows, Index columns);
  /// Adds the product of a block's last activations and its output weights.
  void add(const factor& activations, const factor& weights);
  /// Returns the sum over all blocks of all ranks, for the rows of this rank. Collective.
  matrix total();

  /// Returns which of `rows` rows this rank has: all, except with sequence parallelism.
  range rows_here(Index rows) const;
  matrix part(const matrix& all) const;
  /// Gathers the rows of all ranks, `rows` in total. Collective with sequence parallelism.
  matrix whole(const matrix& part, Index rows);
  /// Sums, in place, what ranks computed from their rows. Collective with sequence parallelism.
  void add_up(std::vector<float>& values);

  /// Time of the sums over ranks since `forget_seconds`.
  double seconds() const noexcept { return seconds_; }
  void forget_seconds() noexcept { seconds_ = 0; }

 private:
  void add_over_ranks();
  std::vector<std::size_t> elements_of_ranks(Index rows, Index columns) const;

  const hocket::ucx::communicator* ranks_;
  bool exact_;
  bool spread_;
  Index rows_ = 0;
  Index columns_ = 0;
  matrix sums_;
  std::vector<hocket::exact_sum<float>> exact_sums_;
  double seconds_ = 0;
};

/// The values that a layer saves in the forward pass of some sequences for their backward pass.
struct layer_memory {
  struct head {
    matrix query_key_value;  ///< of all sequences; queries and keys turned by their positions
    matrix probabilities;
    matrix out;  ///< output of attention, before the output weights
  };
  Index rows = 0;  ///< on all ranks
  matrix in;       ///< input of the layer; like `middle`, the rows of this rank
  matrix middle;   ///< after attention
  std::vector<float> in_scales, middle_scales;
  std::vector<head> heads;
  std::vector<matrix> hidden;  ///< of each slice, before the rectifier
};

class layer {
 public:
  /// @param first the number of its first parameter in `memory`
  layer(const model_shape& shape, range blocks, std::size_t first, training_memory& memory, block_sum& sum)
      : shape_(shape), blocks_(blocks), first_(first), memory_(memory), sum_(sum),
        positions_(shape.context, shape.head_width()) {}

  std::size_t first_parameter() const noexcept { return first_; }
  std::size_t parameters() const noexcept { return 2 + 4 * static_cast<std::size_t>(blocks_.size()); }

  /// @param in this rank's rows of the activations of some sequences
  /// @param rows number of rows on all ranks
  matrix forward(matrix in, Index rows, layer_memory& kept);
  /// Returns the gradient of `in`, given that of the result of `forward`; adds to those of the parameters.
  matrix backward(matrix gradient, const layer_memory& kept);

 private:
  // Parameters as `entries_of` lists them.
  std::size_t query_key_value(int b) const noexcept { return first_ + 1 + 2 * static_cast<std::size_t>(b); }
  std::size_t attention_out(int b) const noexcept { return query_key_value(b) + 1; }
  std::size_t hidden_gain() const noexcept { return query_key_value(blocks_.size()); }
  std::size_t hidden_in(int b) const noexcept { return hidden_gain() + 1 + 2 * static_cast<std::size_t>(b); }
  std::size_t hidden_out(int b) const noexcept { return hidden_in(b) + 1; }

  matrix_view weights(std::size_t i, Index rows, Index columns) { return {memory_.weights(i).data(), rows, columns}; }
  void add_gradient(std::size_t i, const matrix& gradient);

  float scale() const;

  /// Returns the input of the blocks: all rows, normalised.
  matrix attention_input(const layer_memory& kept);
  matrix hidden_input(const layer_memory& kept);
  matrix attention(const matrix& x, layer_memory& kept);
  void attention_backward(const matrix& gradient, const layer_memory& kept);
  matrix hidden(const matrix& x, layer_memory& kept);
  void hidden_backward(const matrix& gradient, const layer_memory& kept);
  /// Passes the sum of the blocks' gradients back through the normalisation, and adds it to `gradient`, which bypasses
  /// the blocks. The gain of the normalisation and the sum are on all ranks.
  matrix through_norm(const matrix& before, const std::vector<float>& scales, std::size_t gain, matrix gradient);

  model_shape shape_;
  range blocks_;
  std::size_t first_;
  training_memory& memory_;
  block_sum& sum_;
  rotation positions_;
};

}  // namespace gpt
