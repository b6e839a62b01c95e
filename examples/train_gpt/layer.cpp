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
  const auto size = static_cast<std::size_t>(rows * columns);
  if (exact_) {
    exact_sums_.assign(size, {});
  } else {
    sums_.assign(size, 0.0F);
  }
}

void block_sum::add(const matrix& part) {
  const std::span<const float> values = elements(part);
  if (exact_) {
    hocket::exact_sum<float>::add(exact_sums_, values);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) sums_[i] += values[i];
  }
}

matrix block_sum::total() {
  matrix result(rows_here(rows_).size(), columns_);
  const std::span<float> values = elements(result);
  if (spread_) {
    const hocket::stopwatch watch(seconds_);
    hocket::reduce_scatter_v(*ranks_, std::span<const float>(sums_), values,
                             hocket::counts{elements_of_ranks(rows_, columns_)});
    return result;
  }
  if (ranks_ != nullptr) add_over_ranks();
  if (exact_) {
    hocket::exact_sum<float>::value(exact_sums_, values);
  } else {
    std::copy(sums_.begin(), sums_.end(), values.begin());
  }
  return result;
}

void block_sum::add_over_ranks() {
  const hocket::stopwatch watch(seconds_);
  if (exact_) {
    hocket::all_reduce(*ranks_, hocket::in_place(std::span(exact_sums_)), std::plus<>{});
  } else {
    hocket::all_reduce(*ranks_, hocket::in_place(std::span(sums_)), std::plus<>{});
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

matrix layer::backward(const matrix& gradient, const layer_memory& kept) {
  const matrix middle = hidden_backward(sum_.whole(gradient, kept.rows), kept) + gradient;
  return attention_backward(sum_.whole(middle, kept.rows), kept) + middle;
}

matrix layer::attention(const matrix& x, layer_memory& kept) {
  const Index d = shape_.width, w = shape_.head_width(), t = shape_.context;
  sum_.begin(x.rows(), d);
  kept.heads.resize(static_cast<std::size_t>(blocks_.size()));
  for (int b = 0; b < blocks_.size(); ++b) {
    layer_memory::head& head = kept.heads[static_cast<std::size_t>(b)];
    const matrix all = x * weights(query_key_value(b), d, 3 * w);
    head.query = all.leftCols(w);
    head.key = all.middleCols(w, w);
    head.value = all.rightCols(w);
    head.out.resize(x.rows(), w);
    head.probabilities.resize(static_cast<std::size_t>(sequences(x)));
    for (Index s = 0; s < sequences(x); ++s) {
      matrix q = head.query.middleRows(s * t, t), k = head.key.middleRows(s * t, t);
      positions_.turn(q, 1);
      positions_.turn(k, 1);
      head.query.middleRows(s * t, t) = q;
      head.key.middleRows(s * t, t) = k;
      const matrix v = head.value.middleRows(s * t, t);
      matrix& p = head.probabilities[static_cast<std::size_t>(s)];
      p.noalias() = q * k.transpose();
      p *= scale();
      causal_softmax(p);
      head.out.middleRows(s * t, t) = p * v;
    }
    sum_.add(head.out * weights(attention_out(b), w, d));
  }
  return sum_.total();
}

matrix layer::attention_backward(const matrix& gradient, const layer_memory& kept) {
  const Index d = shape_.width, w = shape_.head_width(), t = shape_.context;
  const matrix x = attention_input(kept);
  sum_.begin(x.rows(), d);
  for (int b = 0; b < blocks_.size(); ++b) {
    const layer_memory::head& head = kept.heads[static_cast<std::size_t>(b)];
    add_gradient(attention_out(b), matrix(head.out.transpose() * gradient));
    const matrix dout = gradient * weights(attention_out(b), w, d).transpose();
    matrix dall(x.rows(), 3 * w);
    for (Index s = 0; s < sequences(x); ++s) {
      const matrix q = head.query.middleRows(s * t, t), k = head.key.middleRows(s * t, t);
      const matrix v = head.value.middleRows(s * t, t), doutput = dout.middleRows(s * t, t);
      const matrix& p = head.probabilities[static_cast<std::size_t>(s)];
      matrix dscores = doutput * v.transpose();
      softmax_backward(p, dscores);
      dscores *= scale();
      matrix dq = dscores * k, dk = dscores.transpose() * q;
      positions_.turn(dq, -1);
      positions_.turn(dk, -1);
      dall.block(s * t, 0, t, w) = dq;
      dall.block(s * t, w, t, w) = dk;
      dall.block(s * t, 2 * w, t, w) = matrix(p.transpose() * doutput);
    }
    add_gradient(query_key_value(b), matrix(x.transpose() * dall));
    sum_.add(dall * weights(query_key_value(b), d, 3 * w).transpose());
  }
  return through_norm(kept.in, kept.in_scales, first_);
}

matrix layer::hidden(const matrix& x, layer_memory& kept) {
  const Index d = shape_.width, f = shape_.hidden_slice();
  sum_.begin(x.rows(), d);
  kept.hidden.resize(static_cast<std::size_t>(blocks_.size()));
  for (int b = 0; b < blocks_.size(); ++b) {
    matrix& h = kept.hidden[static_cast<std::size_t>(b)];
    h.noalias() = x * weights(hidden_in(b), d, f);
    sum_.add(rectified(h) * weights(hidden_out(b), f, d));
  }
  return sum_.total();
}

matrix layer::hidden_backward(const matrix& gradient, const layer_memory& kept) {
  const Index d = shape_.width, f = shape_.hidden_slice();
  const matrix x = hidden_input(kept);
  sum_.begin(x.rows(), d);
  for (int b = 0; b < blocks_.size(); ++b) {
    const matrix& h = kept.hidden[static_cast<std::size_t>(b)];
    add_gradient(hidden_out(b), matrix(rectified(h).transpose() * gradient));
    matrix dh = gradient * weights(hidden_out(b), f, d).transpose();
    dh.array() *= 2 * h.array().max(0.0F);
    add_gradient(hidden_in(b), matrix(x.transpose() * dh));
    sum_.add(dh * weights(hidden_in(b), d, f).transpose());
  }
  return through_norm(kept.middle, kept.middle_scales, hidden_gain());
}

matrix layer::through_norm(const matrix& before, const std::vector<float>& scales, std::size_t gain) {
  const matrix dy = sum_.total();
  matrix dx = matrix::Zero(before.rows(), before.cols());
  std::vector<float> dgain(static_cast<std::size_t>(before.cols()));
  normalised_backward(before, scales, memory_.weights(gain), dy, dx, dgain);
  sum_.add_up(dgain);
  memory_.add_gradient(gain, dgain);
  return dx;
}

}  // namespace gpt
