// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "layer.hpp"

#include <hocket/collective/all_reduce.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

namespace gpt {
namespace {

matrix rectified(const matrix& h) { return h.array().max(0.0F).square(); }

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
  const std::span<const float> values(part.data(), static_cast<std::size_t>(part.size()));
  if (exact_) {
    hocket::exact_sum<float>::add(exact_sums_, values);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) sums_[i] += values[i];
  }
}

matrix block_sum::total() {
  matrix result(rows_, columns_);
  const std::span<float> values(result.data(), static_cast<std::size_t>(result.size()));
  if (ranks_ != nullptr) add_over_ranks();
  if (exact_) {
    hocket::exact_sum<float>::value(exact_sums_, values);
  } else {
    std::copy(sums_.begin(), sums_.end(), values.begin());
  }
  return result;
}

void block_sum::add_over_ranks() {
  const auto begin = std::chrono::steady_clock::now();
  if (exact_) {
    hocket::all_reduce(*ranks_, hocket::in_place(std::span(exact_sums_)), std::plus<>{});
  } else {
    hocket::all_reduce(*ranks_, hocket::in_place(std::span(sums_)), std::plus<>{});
  }
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

float layer::scale() const { return 1 / std::sqrt(static_cast<float>(shape_.head_width())); }

void layer::add_gradient(std::size_t i, const matrix& gradient) {
  memory_.add_gradient(i, {gradient.data(), static_cast<std::size_t>(gradient.size())});
}

matrix layer::forward(matrix in, layer_memory& kept) {
  kept.in = std::move(in);
  kept.in_scales = row_scales(kept.in);
  kept.middle = kept.in + attention(normalised(kept.in, kept.in_scales, memory_.weights(first_)), kept);
  kept.middle_scales = row_scales(kept.middle);
  return kept.middle + hidden(normalised(kept.middle, kept.middle_scales, memory_.weights(hidden_gain())), kept);
}

matrix layer::backward(const matrix& gradient, const layer_memory& kept) {
  const matrix middle = hidden_backward(gradient, kept) + gradient;
  return attention_backward(middle, kept) + middle;
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
  const auto gain = memory_.weights(first_);
  const matrix x = normalised(kept.in, kept.in_scales, gain);
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
  const matrix x = normalised(kept.middle, kept.middle_scales, memory_.weights(hidden_gain()));
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
  memory_.add_gradient(gain, dgain);
  return dx;
}

}  // namespace gpt
