// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Products of matrices. Each element of a product is summed from left to right, by itself, in floats. So it depends only
/// on its row and its column: not on the sizes of the matrices, as with a library for large products.
#pragma once

#include <Eigen/Core>

namespace gpt {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using matrix_view = Eigen::Map<const matrix>;
using Eigen::Index;

/// A factor of a product: a matrix, a block of one, or its transpose.
struct factor {
  const float* at;
  Index rows, columns, row_step, column_step;

  template <class Matrix>
  factor(const Matrix& x)  // NOLINT: implicit, so that callers write matrices
      : at(x.data()), rows(x.rows()), columns(x.cols()), row_step(x.rowStride()), column_step(x.colStride()) {}
};

/// Stores a·b in the rows of `result`, which are `step` apart, or adds it to them.
void multiply(const factor& a, const factor& b, float* result, Index step, bool adds);

/// Stores a·b in a matrix or block, or adds it.
template <class Matrix>
void set_product(Matrix&& to, const factor& a, const factor& b) {
  multiply(a, b, to.data(), to.rowStride(), false);
}
template <class Matrix>
void add_product(Matrix&& to, const factor& a, const factor& b) {
  multiply(a, b, to.data(), to.rowStride(), true);
}
inline matrix product(const factor& a, const factor& b) {
  matrix result(a.rows, b.columns);
  set_product(result, a, b);
  return result;
}

}  // namespace gpt
