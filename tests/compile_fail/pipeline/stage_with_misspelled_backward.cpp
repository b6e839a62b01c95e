// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a stage must have void backward.*or input_gradient
//
// The functions of a split backward pass have other names.
#include <hocket/pipeline/any_stage.hpp>

#include <cstddef>
#include <span>

struct layers {
  using input_type = float;
  using output_type = float;
  std::size_t input_size() const;
  std::size_t output_size() const;
  void forward(int microbatch, std::span<const float> in, std::span<float> out);
  void input_grad(int microbatch, std::span<const float> in, std::span<const float> out_gradient,
                  std::span<float> in_gradient);
  void weight_grad(int microbatch, std::span<const float> in, std::span<const float> out_gradient);
};

void misuse(layers& given) { hocket::pipeline::any_stage stage(given); }
