// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "layer.hpp"

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/gradient/communication_time.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace gpt {
namespace {

matrix rectified(const matrix& h) { return h.array().max(0.0F).square(); }

std::span<const float> elements(const matrix& x) { return {x.data(), static_cast<std::size_t>(x.size())}; }
std::span<float> elements(matrix& x) { return {x.data(), static_cast<std::size_t>(x.size())}; }

}  // namespace

void block_sum::begin(Index rows, Index columns) {
  rows_ = rows;
  columns_ = columns;
  if (exact_) {
    exact_sums_.assign(static_cast<std::size_t>(rows * columns), {});
  } else {
    sums_ = matrix::Zero(rows, columns);
  }
}

void block_sum::add(const factor& activations, const factor& weights) {
  if (exact_) {
    hocket::exact_sum<float>::add(exact_sums_, elements(product(activations, weights)));
  } else {
    add_product(sums_, activations, weights);
  }
}

matrix block_sum::total() {
  if (spread_) {
    const hocket::stopwatch watch(seconds_);
    matrix result(rows_here(rows_).size(), columns_);
    hocket::reduce_scatter_v(*ranks_, elements(std::as_const(sums_)), elements(result),
                             hocket::counts{elements_of_ranks(rows_, columns_)});
    return result;
  }
  if (ranks_ != nullptr) add_over_ranks();
  if (!exact_) return std::move(sums_);
  matrix result(rows_, columns_);
  hocket::exact_sum<float>::value(exact_sums_, elements(result));
  return result;
}

void block_sum::add_over_ranks() {
  const hocket::stopwatch watch(seconds_);
  if (exact_) {
    hocket::all_reduce(*ranks_, hocket::in_place(std::span(exact_sums_)), std::plus<>{});
  } else {
    hocket::all_reduce(*ranks_, hocket::in_place(elements(sums_)), std::plus<>{});
  }
}

std::vector<std::size_t> block_sum::elements_of_ranks(Index rows, Index columns) const {
  std::vector<std::size_t> lengths;
  for (int rank = 0; rank < ranks_->size(); ++rank) {
    const int size = part_of(static_cast<int>(rows), rank, ranks_->size()).size();
    lengths.push_back(static_cast<std::size_t>(size * columns));
  }
  return lengths;
}

range block_sum::rows_here(Index rows) const {
  const int all = static_cast<int>(rows);
  return spread_ ? part_of(all, ranks_->rank(), ranks_->size()) : range{0, all};
}

matrix block_sum::part(const matrix& all) const {
  const range rows = rows_here(all.rows());
  return all.middleRows(rows.first, rows.size());
}

matrix block_sum::whole(const matrix& part, Index rows) {
  if (!spread_) return part;
  const hocket::stopwatch watch(seconds_);
  matrix all(rows, part.cols());
  hocket::all_gather_v(*ranks_, elements(part), elements(all), hocket::counts{elements_of_ranks(rows, part.cols())});
  return all;
}

void block_sum::add_up(std::vector<float>& values) {
  if (!spread_) return;
  const hocket::stopwatch watch(seconds_);
  hocket::all_reduce(*ranks_, hocket::in_place(values), std::plus<>{});
}

float layer::scale() const { return 1 / std::sqrt(static_cast<float>(shape_.head_width())); }

void layer::add_gradient(std::size_t i, const matrix& gradient) { memory_.add_gradient(i, elements(gradient)); }

matrix layer::forward(matrix in, Index rows, layer_memory& kept) {
  kept.rows = rows;
  kept.in = std::move(in);
  kept.in_scales = row_scales(kept.in);
  kept.middle = kept.in + attention(attention_input(kept), kept);
  kept.middle_scales = row_scales(kept.middle);
  return kept.middle + hidden(hidden_input(kept), kept);
}

matrix layer::attention_input(const layer_memory& kept) {
  return sum_.whole(normalised(kept.in, kept.in_scales, memory_.weights(first_)), kept.rows);
}

matrix layer::hidden_input(const layer_memory& kept) {
  return sum_.whole(normalised(kept.middle, kept.middle_scales, memory_.weights(hidden_gain())), kept.rows);
}

matrix layer::backward(matrix gradient, const layer_memory& kept) {
  hidden_backward(sum_.whole(gradient, kept.rows), kept);
  gradient = through_norm(kept.middle, kept.middle_scales, hidden_gain(), std::move(gradient));
  attention_backward(sum_.whole(gradient, kept.rows), kept);
  return through_norm(kept.in, kept.in_scales, first_, std::move(gradient));
}

matrix layer::attention(const matrix& x, layer_memory& kept) {
  const Index d = shape_.width, w = shape_.head_width(), t = shape_.context;
  sum_.begin(x.rows(), d);
  kept.heads.resize(static_cast<std::size_t>(blocks_.size()));
  for (int b = 0; b < blocks_.size(); ++b) {
    auto& [all, probabilities, out] = kept.heads[static_cast<std::size_t>(b)];
    all = product(x, weights(query_key_value(b), d, 3 * w));
    positions_.turn(all, 0, 1);
    positions_.turn(all, w, 1);
    probabilities.resize(x.rows(), t);
    for (Index row = 0; row < x.rows(); row += t) {
      set_product(probabilities.middleRows(row, t), all.block(row, 0, t, w), all.block(row, w, t, w).transpose());
    }
    causal_softmax(probabilities, scale());
    out.resize(x.rows(), w);
    for (Index row = 0; row < x.rows(); row += t) {
      set_product(out.middleRows(row, t), probabilities.middleRows(row, t), all.block(row, 2 * w, t, w));
    }
    sum_.add(out, weights(attention_out(b), w, d));
  }
  return sum_.total();
}

void layer::attention_backward(const matrix& gradient, const layer_memory& kept) {
  const Index d = shape_.width, w = shape_.head_width(), t = shape_.context;
  const matrix x = attention_input(kept);
  sum_.begin(x.rows(), d);
  for (int b = 0; b < blocks_.size(); ++b) {
    const auto& [all, probabilities, out] = kept.heads[static_cast<std::size_t>(b)];
    add_gradient(attention_out(b), product(out.transpose(), gradient));
    const matrix dout = product(gradient, weights(attention_out(b), w, d).transpose());
    matrix dscores(x.rows(), t), dall(x.rows(), 3 * w);
    for (Index row = 0; row < x.rows(); row += t) {
      set_product(dscores.middleRows(row, t), dout.middleRows(row, t), all.block(row, 2 * w, t, w).transpose());
    }
    softmax_backward(probabilities, dscores, scale());
    for (Index row = 0; row < x.rows(); row += t) {
      const auto of_scores = dscores.middleRows(row, t);
      set_product(dall.block(row, 0, t, w), of_scores, all.block(row, w, t, w));
      set_product(dall.block(row, w, t, w), of_scores.transpose(), all.block(row, 0, t, w));
      set_product(dall.block(row, 2 * w, t, w), probabilities.middleRows(row, t).transpose(), dout.middleRows(row, t));
    }
    positions_.turn(dall, 0, -1);
    positions_.turn(dall, w, -1);
    add_gradient(query_key_value(b), product(x.transpose(), dall));
    sum_.add(dall, weights(query_key_value(b), d, 3 * w).transpose());
  }
}

matrix layer::hidden(const matrix& x, layer_memory& kept) {
  const Index d = shape_.width, f = shape_.hidden_slice();
  sum_.begin(x.rows(), d);
  kept.hidden.resize(static_cast<std::size_t>(blocks_.size()));
  for (int b = 0; b < blocks_.size(); ++b) {
    matrix& h = kept.hidden[static_cast<std::size_t>(b)];
    h = product(x, weights(hidden_in(b), d, f));
    sum_.add(rectified(h), weights(hidden_out(b), f, d));
  }
  return sum_.total();
}

void layer::hidden_backward(const matrix& gradient, const layer_memory& kept) {
  const Index d = shape_.width, f = shape_.hidden_slice();
  const matrix x = hidden_input(kept);
  sum_.begin(x.rows(), d);
  for (int b = 0; b < blocks_.size(); ++b) {
    const matrix& h = kept.hidden[static_cast<std::size_t>(b)];
    add_gradient(hidden_out(b), product(rectified(h).transpose(), gradient));
    matrix dh = product(gradient, weights(hidden_out(b), f, d).transpose());
    dh.array() *= 2 * h.array().max(0.0F);
    add_gradient(hidden_in(b), product(x.transpose(), dh));
    sum_.add(dh, weights(hidden_in(b), d, f).transpose());
  }
}

matrix layer::through_norm(const matrix& before, const std::vector<float>& scales, std::size_t gain, matrix gradient) {
  const matrix dy = sum_.total();
  std::vector<float> dgain(static_cast<std::size_t>(before.cols()));
  normalised_backward(before, scales, memory_.weights(gain), dy, gradient, dgain);
  sum_.add_up(dgain);
  memory_.add_gradient(gain, dgain);
  return gradient;
}

}  // namespace gpt
