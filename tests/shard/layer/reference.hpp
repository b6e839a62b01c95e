// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The expected results of layers, computed by loops over whole matrices in double precision, and comparisons with the
/// parts of tensors.
#pragma once

#include "support/thread_ranks.hpp"

#include <hocket/shard/apply.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/tensor.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace hocket_test {

/// Products for linear layers. Parts are row-major, and may be empty.
struct eigen_products {
  template <class View>
  static auto matrix(View view) {
    using element = typename View::value_type;
    using dense = Eigen::Matrix<element, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using mapped = std::conditional_t<std::is_const_v<typename View::element_type>, const dense, dense>;
    return Eigen::Map<mapped>(view.data_handle(), static_cast<Eigen::Index>(view.extent(0)),
                              static_cast<Eigen::Index>(view.extent(1)));
  }

  template <class X, class W, class Y>
  void operator()(hocket::multilinear<"tk,kn->tn">, X x, W w, Y to) const {
    matrix(to).noalias() += matrix(x) * matrix(w);
  }
  template <class D, class W, class G>
  void operator()(hocket::multilinear<"tn,kn->tk">, D d, W w, G to) const {
    matrix(to).noalias() += matrix(d) * matrix(w).transpose();
  }
  template <class X, class D, class G>
  void operator()(hocket::multilinear<"tk,tn->kn">, X x, D d, G to) const {
    matrix(to).noalias() += matrix(x).transpose() * matrix(d);
  }
};

/// A whole matrix. A vector is a matrix with one row.
struct whole_matrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<double> elements;

  whole_matrix(std::size_t of_rows, std::size_t of_columns)
      : rows(of_rows), columns(of_columns), elements(of_rows * of_columns) {}

  /// Returns a matrix of numbers without a pattern, between -1 and 1.
  static whole_matrix wave(std::size_t rows, std::size_t columns, int seed) {
    whole_matrix made(rows, columns);
    for (std::size_t i = 0; i < made.elements.size(); ++i) {
      made.elements[i] = std::sin(12.9898 * static_cast<double>(i + 1) + 78.233 * seed);
    }
    return made;
  }

  double& operator()(std::size_t row, std::size_t column) { return elements[row * columns + column]; }
  double operator()(std::size_t row, std::size_t column) const { return elements[row * columns + column]; }

  double at(const std::array<std::size_t, 1>& where) const { return elements[where[0]]; }
  double at(const std::array<std::size_t, 2>& where) const { return (*this)(where[0], where[1]); }

  double largest() const {
    double found = 0;
    for (const double each : elements) found = std::max(found, std::abs(each));
    return found;
  }
};

inline whole_matrix transposed(const whole_matrix& a) {
  whole_matrix result(a.columns, a.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result(j, i) = a(i, j);
  }
  return result;
}

inline whole_matrix product(const whole_matrix& a, const whole_matrix& b) {
  whole_matrix result(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.columns; ++j) {
      for (std::size_t k = 0; k < a.columns; ++k) result(i, j) += a(i, k) * b(k, j);
    }
  }
  return result;
}

inline whole_matrix plus_row(whole_matrix a, const whole_matrix& row) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) a(i, j) += row(0, j);
  }
  return a;
}

inline whole_matrix row_sum(const whole_matrix& a) {
  whole_matrix result(1, a.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) result(0, j) += a(i, j);
  }
  return result;
}

/// Returns the loss of each token, [1, tokens].
inline whole_matrix cross_entropy(const whole_matrix& logits, const std::vector<int>& targets, double smoothing) {
  whole_matrix loss(1, logits.rows);
  for (std::size_t t = 0; t < logits.rows; ++t) {
    if (targets[t] < 0) continue;
    double sum = 0;
    for (std::size_t v = 0; v < logits.columns; ++v) sum += std::exp(logits(t, v));
    for (std::size_t v = 0; v < logits.columns; ++v) {
      const double wanted = (static_cast<std::size_t>(targets[t]) == v ? 1 - smoothing : 0) +
                            smoothing / static_cast<double>(logits.columns);
      if (wanted > 0) loss(0, t) -= wanted * (logits(t, v) - std::log(sum));
    }
  }
  return loss;
}

/// Returns the gradient of the logits, given that of the losses.
inline whole_matrix cross_entropy_gradient(const whole_matrix& logits, const std::vector<int>& targets,
                                           double smoothing, const whole_matrix& gradient) {
  whole_matrix result(logits.rows, logits.columns);
  for (std::size_t t = 0; t < logits.rows; ++t) {
    if (targets[t] < 0) continue;
    double sum = 0;
    for (std::size_t v = 0; v < logits.columns; ++v) sum += std::exp(logits(t, v));
    for (std::size_t v = 0; v < logits.columns; ++v) {
      const double wanted = (static_cast<std::size_t>(targets[t]) == v ? 1 - smoothing : 0) +
                            smoothing / static_cast<double>(logits.columns);
      result(t, v) = (std::exp(logits(t, v)) / sum - wanted) * gradient(0, t);
    }
  }
  return result;
}

/// Sets the elements of this rank to their values in the whole.
template <class Tensor>
void fill_from(Tensor& tensor, const whole_matrix& whole) {
  hocket::fill(tensor, [&](const auto& where) { return static_cast<typename Tensor::element_type>(whole.at(where)); });
}

/// Tolerance of results in T compared to double, relative to the largest element.
template <class T>
inline constexpr double tolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;

/// Checks that the elements of this rank equal those of the whole.
template <class Tensor>
void check_part(thread_rank& me, const Tensor& tensor, const whole_matrix& whole, const std::string& what,
                double allowed = tolerance<std::remove_const_t<typename Tensor::element_type>>) {
  std::size_t total = 1;
  for (const std::size_t each : tensor.sizes()) total *= each;
  if (!me.check(total == whole.elements.size(), what + " has other extents")) return;
  const auto& part = tensor.part();
  const double scale = std::max(whole.largest(), 1e-300);
  double difference = 0;
  const auto* next = tensor.elements().data();
  hocket::for_each_index(part.size, [&](auto where) {
    for (std::size_t d = 0; d < where.size(); ++d) where[d] += part.begin[d];
    const double found = std::abs(static_cast<double>(*next++) - whole.at(where)) / scale;
    if (!(found <= difference)) difference = found;  // also a NaN
  });
  me.check(difference <= allowed, [&] { return what + " differs by " + std::to_string(difference * 1e12) + "e-12"; });
}

/// Extents of the meshes dp x tp on which layers are tested.
inline const std::vector<std::vector<int>> layer_meshes = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {2, 3}};

}  // namespace hocket_test
