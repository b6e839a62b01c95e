// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stage.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace gpt {

stage::stage(const model_shape& shape, range layers, range blocks, std::size_t first_parameter, training_memory& memory,
             block_sum& sum, int sequences, bool split)
    : shape_(shape), range_(layers), first_(first_parameter), memory_(memory), sum_(sum), sequences_(sequences),
      chunk_(split ? 1 : sequences) {
  std::size_t next = first_parameter + (is_first() ? 1U : 0U);
  for (int i = 0; i < layers.size(); ++i) {
    layers_.emplace_back(shape, blocks, next, memory, sum);
    next += layers_.back().parameters();
  }
  end_ = next + (is_last() ? 2U : 0U);
}

template <class Compute>
void stage::with_parameters(bool forwards, Compute compute) {
  const std::size_t count = layers_.size();
  const auto number = [&](std::size_t step) { return forwards ? step : count - 1 - step; };
  const auto fetch = [&](std::size_t i) { memory_.fetch(layers_[i].first_parameter(), layers_[i].parameters()); };
  if (count > 0) fetch(number(0));
  for (std::size_t step = 0; step < count; ++step) {
    if (step + 1 < count) fetch(number(step + 1));
    compute(number(step));
    memory_.release(layers_[number(step)].first_parameter(), layers_[number(step)].parameters());
  }
}

template <class Visit>
void stage::for_each_position(int m, std::size_t c, Visit visit) const {
  for (int i = 0; i < chunk_; ++i) {
    const auto bytes = sequence(m, c, i);
    for (int t = 0; t < shape_.context; ++t) {
      const auto at = static_cast<std::size_t>(t);
      visit(Index{i} * shape_.context + t, bytes[at], bytes[at + 1]);
    }
  }
}

void stage::forward(int m, std::span<const float> in, std::span<float> out) {
  if (!failure_.empty()) throw std::runtime_error(std::exchange(failure_, ""));
  std::vector<chunk>& kept = kept_[static_cast<std::size_t>(m)];
  kept.resize(static_cast<std::size_t>(sequences_ / chunk_));
  for (std::size_t c = 0; c < kept.size(); ++c) {
    matrix x = is_first() ? sum_.part(looked_up(m, c)) : chunk_of(in, c);
    kept[c].layers.resize(layers_.size());
    with_parameters(true,
                    [&](std::size_t i) { x = layers_[i].forward(std::move(x), chunk_rows(), kept[c].layers[i]); });
    if (is_last()) {
      score(m, c, sum_.whole(x, chunk_rows()), kept[c]);
    } else {
      std::copy(x.data(), x.data() + x.size(), out.begin() + static_cast<std::ptrdiff_t>(c) * chunk_elements());
    }
  }
}

void stage::backward(int m, std::span<const float>, std::span<const float> out_gradient, std::span<float> in_gradient) {
  std::vector<chunk>& kept = kept_[static_cast<std::size_t>(m)];
  --left_;
  for (std::size_t c = 0; c < kept.size(); ++c) {
    const bool last_chunk = left_ == 0 && c + 1 == kept.size();
    matrix gradient = is_last() ? sum_.part(score_backward(kept[c])) : chunk_of(out_gradient, c);
    if (last_chunk && is_last()) ready(end_ - 2, end_);
    with_parameters(false, [&](std::size_t i) {
      gradient = layers_[i].backward(std::move(gradient), kept[c].layers[i]);
      if (last_chunk) ready(layers_[i].first_parameter(), layers_[i].first_parameter() + layers_[i].parameters());
    });
    if (is_first()) {
      looked_up_backward(m, c, sum_.whole(gradient, chunk_rows()));
      if (last_chunk) ready(first_, first_ + 1);
    } else {
      std::copy(gradient.data(), gradient.data() + gradient.size(),
                in_gradient.begin() + static_cast<std::ptrdiff_t>(c) * chunk_elements());
    }
  }
  kept.clear();
}

matrix stage::chunk_of(std::span<const float> values, std::size_t c) const {
  return matrix_view(values.data() + static_cast<std::ptrdiff_t>(c) * chunk_elements(), chunk_elements() / shape_.width,
                     shape_.width);
}

matrix stage::looked_up(int m, std::size_t c) {
  memory_.fetch(first_, 1);
  const auto table = memory_.weights(first_);
  matrix x(Index{chunk_} * shape_.context, shape_.width);
  for_each_position(m, c, [&](Index row, std::uint8_t byte, std::uint8_t) {
    for (Index i = 0; i < x.cols(); ++i) x(row, i) = table[static_cast<std::size_t>(byte * x.cols() + i)];
  });
  memory_.release(first_, 1);
  return x;
}

void stage::looked_up_backward(int m, std::size_t c, const matrix& gradient) {
  matrix table = matrix::Zero(model_shape::vocabulary, shape_.width);
  for_each_position(m, c, [&](Index row, std::uint8_t byte, std::uint8_t) { table.row(byte) += gradient.row(row); });
  memory_.add_gradient(first_, {table.data(), static_cast<std::size_t>(table.size())});
}

void stage::score(int m, std::size_t c, matrix x, chunk& kept) {
  memory_.fetch(end_ - 2, 2);
  kept.last = std::move(x);
  kept.scales = row_scales(kept.last);
  kept.scores_gradient = scores_of(kept.last);
  with_vectors([&](auto) {
    for_each_position(m, c, [&](Index row, std::uint8_t, std::uint8_t target) {
      float* const scores = kept.scores_gradient.data() + row * model_shape::vocabulary;
      const auto wanted = static_cast<double>(scores[target]);
      const double divisor = softmax(scores, model_shape::vocabulary);
      scores[target] -= 1;
      loss_.add(divisor - wanted);
    });
  });
  if (scale_ != 1) kept.scores_gradient *= scale_;
  memory_.release(end_ - 2, 2);
}

matrix stage::score_backward(const chunk& kept) {
  memory_.fetch(end_ - 2, 2);
  const auto gain = memory_.weights(end_ - 2);
  const matrix y = normalised(kept.last, kept.scales, gain);
  const matrix dscores = product(y.transpose(), kept.scores_gradient);
  memory_.add_gradient(end_ - 1, {dscores.data(), static_cast<std::size_t>(dscores.size())});
  const matrix_view weights(memory_.weights(end_ - 1).data(), shape_.width, model_shape::vocabulary);
  const matrix dy = product(kept.scores_gradient, weights.transpose());
  matrix dx = matrix::Zero(kept.last.rows(), kept.last.cols());
  std::vector<float> dgain(static_cast<std::size_t>(shape_.width));
  normalised_backward(kept.last, kept.scales, gain, dy, dx, dgain);
  memory_.add_gradient(end_ - 2, dgain);
  memory_.release(end_ - 2, 2);
  return dx;
}

matrix stage::scores_of(const matrix& x) {
  return product(normalised(x, row_scales(x), memory_.weights(end_ - 2)),
                 matrix_view(memory_.weights(end_ - 1).data(), shape_.width, model_shape::vocabulary));
}

void stage::begin_pass(const std::vector<microbatch>& batch, float scale) {
  batch_ = &batch;
  kept_.resize(batch.size());
  left_ = batch.size();
  scale_ = scale;
}

std::vector<float> stage::scores_after(std::span<const std::uint8_t> bytes, std::size_t position) {
  const std::vector<microbatch> one{{bytes}};
  begin_pass(one);
  matrix x = looked_up(0, 0);
  layer_memory unused;
  for (layer& each : layers_) x = each.forward(std::move(x), chunk_rows(), unused);
  const matrix scores = scores_of(x);
  const float* const row = scores.data() + static_cast<std::ptrdiff_t>(position) * model_shape::vocabulary;
  return {row, row + model_shape::vocabulary};
}

}  // namespace gpt
