// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Looks at what a model has learned: its loss on text that it has not seen, and what it writes. One process does it,
/// with all parameters.
#pragma once

#include "plain_memory.hpp"
#include "shape.hpp"
#include "stage.hpp"
#include "text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpt {

class learned_model {
 public:
  /// @param parameters as `trainer::all_parameters` gives them
  learned_model(const model_shape& shape, std::vector<std::vector<float>> parameters);

  /// The mean loss in nats per byte over at most `sequences` sequences that lie evenly in `text`, which must be longer
  /// than a context.
  double loss(byte_span text, std::size_t sequences);

  /// Continues `prompt` by `count` bytes; below 1 `temperature` makes the likelier ones likelier still.
  std::string write(byte_span prompt, std::size_t count, double temperature, std::uint64_t seed);

 private:
  model_shape shape_;
  plain_memory memory_;
  block_sum sum_;
  stage all_;
};

}  // namespace gpt
