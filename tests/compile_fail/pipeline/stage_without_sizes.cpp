// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a stage must return its numbers of input and output elements
//
// The stage does not specify the size of its output.
#include <hocket/pipeline/any_stage.hpp>

#include <cstddef>
#include <span>

struct layers {
  using input_type = float;
  using output_type = float;
  std::size_t input_size() const;
  void forward(int microbatch, std::span<const float> in, std::span<float> out);
  void backward(int microbatch, std::span<const float> in, std::span<const float> out_gradient,
                std::span<float> in_gradient);
};

void misuse(layers& given) { hocket::pipeline::any_stage stage(given); }
