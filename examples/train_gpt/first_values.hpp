// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Initial values of the model's parameters.
#pragma once

#include "shape.hpp"
#include "text.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpt {

/// Returns the initial values of a parameter, a function of the seed and its identity. Gains are 1; weights are scaled
/// so that activations neither vanish nor explode.
inline std::vector<float> first_values(const entry& what, const model_shape& shape, std::uint64_t seed) {
  std::vector<float> values(what.elements(), 1.0F);
  if (what.is_gain()) return values;
  const bool leads_out = what.what == kind::attention_out || what.what == kind::hidden_out;
  double fan_in = what.what == kind::embedding ? 1 : what.rows;
  if (leads_out) fan_in *= shape.heads * 2.0 * shape.layers;  // the number of blocks that are added
  const double half_width = std::sqrt(3 / fan_in) * (what.what == kind::embedding ? 0.5 : 1);
  const std::uint64_t own = mix(mix(seed) ^ what.identity());
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((2 * uniform(mix(own + i)) - 1) * half_width);
  return values;
}

}  // namespace gpt
