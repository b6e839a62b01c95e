// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Evaluates a trained model: its loss on held-out text, and text that it generates. Runs in one process with all
/// parameters.
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
  /// @param parameters the result of `trainer::all_parameters`
  learned_model(const model_shape& shape, std::vector<std::vector<float>> parameters);

  /// Returns the mean loss in nats per byte over at most `sequences` evenly spaced sequences of `text`, which must be
  /// longer than a context.
  double loss(byte_span text, std::size_t sequences);

  /// Continues `prompt` by `count` bytes; a `temperature` below 1 favours likely bytes.
  std::string write(byte_span prompt, std::size_t count, double temperature, std::uint64_t seed);

 private:
  model_shape shape_;
  plain_memory memory_;
  block_sum sum_;
  stage all_;
};

}  // namespace gpt
