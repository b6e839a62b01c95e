// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One layer of the model: attention, then a hidden layer of squared rectifiers, each on normalised activations and
/// added to what came in. Both are sums over blocks, of which tensor-parallel ranks have a part each: the sum over the
/// ranks is the layer's communication, one in front of each of the two additions, and one behind each in the backward
/// pass.
///
/// With sequence parallelism each tensor-parallel rank has some rows of the activations between blocks: rows are
/// gathered in front of the blocks, and sums are scattered behind them. Each rank keeps and normalises a part; a quarter
/// more travels, as what goes into the blocks is not kept whole, but gathered again for the backward pass.
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

/// Adds up what blocks give, on this rank and on all tensor-parallel ranks: as floats, or without rounding before the
/// end, and then with the same bits however blocks are dealt out.
class block_sum {
 public:
  /// @param ranks the tensor-parallel ones; null: this rank has all blocks
  /// @param spread whether each of them has some of the rows; not with `exact`
  block_sum(const hocket::ucx::communicator* ranks, bool exact, bool spread = false)
      : ranks_(ranks), exact_(exact), spread_(spread && ranks != nullptr) {}

  void begin(Index rows, Index columns);
  void add(const matrix& part);
  /// Over all blocks of all ranks; those rows that this rank has. Collective.
  matrix total();

  /// Which of `rows` rows this rank has: all, unless they are spread.
  range rows_here(Index rows) const;
  matrix part(const matrix& all) const;
  /// All rows, from those that each rank has. Collective where they are spread; `rows` is how many there are in all.
  matrix whole(const matrix& part, Index rows);
  /// What ranks found from their rows, added up in place. Collective where they are spread.
  void add_up(std::vector<float>& values);

  /// How long the sums over ranks took, since `forget_seconds`.
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
  std::vector<float> sums_;
  std::vector<hocket::exact_sum<float>> exact_sums_;
  double seconds_ = 0;
};

/// What the layer keeps from the forward pass of some sequences for their backward pass.
struct layer_memory {
  struct head {
    matrix query, key, value;           ///< of all sequences, turned by their positions
    std::vector<matrix> probabilities;  ///< of each sequence
    matrix out;                         ///< what attention gives, before it leads out of the block
  };
  Index rows = 0;  ///< of all ranks
  matrix in;       ///< of the layer; as `middle`, the rows that this rank has
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

  /// @param in the rows that this rank has of the activations of some sequences
  /// @param rows how many there are in all
  matrix forward(matrix in, Index rows, layer_memory& kept);
  /// The gradient of `in`, from that of what `forward` gave; adds those of the parameters.
  matrix backward(const matrix& gradient, const layer_memory& kept);

 private:
  // Parameters as `entries_of` lists them.
  std::size_t query_key_value(int b) const noexcept { return first_ + 1 + 2 * static_cast<std::size_t>(b); }
  std::size_t attention_out(int b) const noexcept { return query_key_value(b) + 1; }
  std::size_t hidden_gain() const noexcept { return query_key_value(blocks_.size()); }
  std::size_t hidden_in(int b) const noexcept { return hidden_gain() + 1 + 2 * static_cast<std::size_t>(b); }
  std::size_t hidden_out(int b) const noexcept { return hidden_in(b) + 1; }

  matrix_view weights(std::size_t i, Index rows, Index columns) { return {memory_.weights(i).data(), rows, columns}; }
  void add_gradient(std::size_t i, const matrix& gradient);

  Index sequences(const matrix& x) const { return x.rows() / shape_.context; }
  float scale() const;

  /// What goes into the blocks: all rows, normalised.
  matrix attention_input(const layer_memory& kept);
  matrix hidden_input(const layer_memory& kept);
  matrix attention(const matrix& x, layer_memory& kept);
  matrix attention_backward(const matrix& gradient, const layer_memory& kept);
  matrix hidden(const matrix& x, layer_memory& kept);
  matrix hidden_backward(const matrix& gradient, const layer_memory& kept);
  /// What the sum of the blocks' gradients gives before the normalisation. Its gain is on all ranks, and so is the sum.
  matrix through_norm(const matrix& before, const std::vector<float>& scales, std::size_t gain);

  model_shape shape_;
  range blocks_;
  std::size_t first_;
  training_memory& memory_;
  block_sum& sum_;
  rotation positions_;
};

}  // namespace gpt
