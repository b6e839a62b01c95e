// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a stage must have void forward.int microbatch, std::span<const input_type> in
//
// The forward pass takes vectors, but the buffers are spans.
#include <hocket/pipeline/any_stage.hpp>

#include <cstddef>
#include <span>
#include <vector>

struct layers {
  using input_type = float;
  using output_type = float;
  std::size_t input_size() const;
  std::size_t output_size() const;
  void forward(int microbatch, std::vector<float>& in, std::vector<float>& out);
  void backward(int microbatch, std::span<const float> in, std::span<const float> out_gradient,
                std::span<float> in_gradient);
};

void misuse(layers& given) { hocket::pipeline::any_stage stage(given); }
