// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "product.hpp"

#include "vectors.hpp"

#include <cstddef>
#include <vector>

namespace gpt {
namespace {

/// Where a product is stored or added.
struct target {
  float* at;
  Index step, columns;
  bool adds;
};

template <int Lanes>
[[gnu::always_inline]] inline void store(const target& to, Index row, Index column,
                                         const typename vector<Lanes>::type& sums) {
  using elements = typename vector<Lanes>::elements;
  float* const at = to.at + row * to.step + column;
  if (column + Lanes <= to.columns) {
    elements& all = *reinterpret_cast<elements*>(at);
    all.vector = to.adds ? all.vector + sums : sums;
  } else {
    float values[std::size_t{Lanes}];
    reinterpret_cast<elements*>(values)->vector = sums;
    for (Index i = 0; column + i < to.columns; ++i) at[i] = to.adds ? at[i] + values[i] : values[i];
  }
}

/// Computes `Rows` rows of `Vectors` vectors of a product in registers.
template <int Lanes, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_tile(const factor& a, const factor& b, const target& to, Index row,
                                                 Index column) {
  using elements = typename vector<Lanes>::elements;
  typename vector<Lanes>::type sums[std::size_t{Rows}][std::size_t{Vectors}] = {};
  const Index row_step = a.row_step, column_step = a.column_step, right_step = b.row_step;
  const float* left = a.at + row * row_step;
  const float* right = b.at + column;
  for (Index k = a.columns; k > 0; --k, left += column_step, right += right_step) {
    for (int i = 0; i < Rows; ++i) {
      for (int j = 0; j < Vectors; ++j) {
        sums[i][j] += left[i * row_step] * reinterpret_cast<const elements*>(right)[j].vector;
      }
    }
  }
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Vectors; ++j) store<Lanes>(to, row + i, column + j * Lanes, sums[i][j]);
  }
}

template <int Lanes, int Vectors>
[[gnu::always_inline]] inline void multiply_columns(const factor& a, const factor& b, const target& to, Index column) {
  constexpr int rows = 8;
  Index row = 0;
  for (; row + rows <= a.rows; row += rows) multiply_tile<Lanes, rows, Vectors>(a, b, to, row, column);
  for (; row < a.rows; ++row) multiply_tile<Lanes, 1, Vectors>(a, b, to, row, column);
}

/// Returns `b`, or a copy of it in `memory`, with rows of whole vectors.
factor in_whole_vectors(const factor& b, std::vector<float>& memory) {
  constexpr Index lanes = 16;
  if (b.column_step == 1 && b.columns % lanes == 0) return b;
  factor copy = b;
  copy.columns = copy.row_step = (b.columns + lanes - 1) / lanes * lanes;
  copy.column_step = 1;
  memory.resize(static_cast<std::size_t>(copy.rows * copy.columns));
  for (Index k = 0; k < b.rows; ++k) {
    float* const row = memory.data() + k * copy.row_step;
    for (Index j = 0; j < b.columns; ++j) row[j] = b.at[k * b.row_step + j * b.column_step];
  }
  copy.at = memory.data();
  return copy;
}

}  // namespace

void multiply(const factor& a, const factor& b, float* result, Index step, bool adds) {
  std::vector<float> memory;
  const factor right = in_whole_vectors(b, memory);
  const target to{result, step, b.columns, adds};
  with_vectors([&]<int Lanes>(vector<Lanes>) {
    constexpr int vectors = Lanes == 16 ? 2 : 1;  // AVX-512 has twice as many registers
    Index column = 0;
    for (; column + vectors * Lanes <= right.columns; column += vectors * Lanes) {
      multiply_columns<Lanes, vectors>(a, right, to, column);
    }
    for (; column < right.columns; column += Lanes) multiply_columns<Lanes, 1>(a, right, to, column);
  });
}

}  // namespace gpt
