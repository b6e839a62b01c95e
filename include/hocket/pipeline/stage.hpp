// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The stage of a pipeline: a user-defined type with a forward and a backward pass. The executor moves activations and
/// gradients between stages; the user defines the computations of a stage.
///
/// @code
/// struct my_stage {
///   using input_type = float;   // element type of the input, any trivially copyable type
///   using output_type = float;  // element type of the output
///   std::size_t input_size() const;
///   std::size_t output_size() const;
///   void forward(int microbatch, std::span<const float> in, std::span<float> out);
///   void backward(int microbatch, std::span<const float> in, std::span<const float> out_gradient,
///                 std::span<float> in_gradient);
/// };
/// @endcode
///
/// For schedules that separate the two gradients, instead of `backward` or in addition to it:
/// `input_gradient(microbatch, in, out_gradient, in_gradient)` and `weight_gradient(microbatch, in, out_gradient)`. `in`
/// is the input of `forward`; `out_gradient` remains valid until both have returned. The stage must store anything else
/// that the gradients need, by microbatch. Gradients of parameters add up inside the stage.
///
/// For schedules with recomputation of activations (R): `forget(microbatch)`, called right after the forward pass,
/// frees the activations that the stage stores for the gradients. `recompute(microbatch, in)`, called before these with
/// the same `in`, computes them again. Neither is called for microbatches for which the schedule has no R.
///
/// The first stage has `input_size()` 0 and fetches its microbatch itself; the last one has `output_size()` 0 and
/// computes the loss itself. Required if the schedule lists them: `unshard()`, `reshard()`, `reduce_gradient()`,
/// `wait_reduce_gradient()` and `update()`, the optimizer's step. Optional: `int stage_number() const`, the number of
/// the stage in the model: stages in the wrong order are then refused even if their sizes are equal.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/pipeline/buffers.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

/// A stage with `backward`.
template <class Stage>
concept has_backward = requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in,
                                std::span<const typename Stage::output_type> out_gradient,
                                std::span<typename Stage::input_type> in_gradient) {
  stage.backward(microbatch, in, out_gradient, in_gradient);
};

/// A stage with `input_gradient` and `weight_gradient`.
template <class Stage>
concept has_gradients_apart = requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in,
                                       std::span<const typename Stage::output_type> out_gradient,
                                       std::span<typename Stage::input_type> in_gradient) {
  stage.input_gradient(microbatch, in, out_gradient, in_gradient);
  stage.weight_gradient(microbatch, in, out_gradient);
};

/// An element type for the buffers between stages: trivially copyable, with at most the alignment of a cache line.
template <class T>
concept stage_element = std::is_trivially_copyable_v<T> && alignof(T) <= buffers::alignment;

/// A stage of a model, with at least one form of the backward pass: see stage.hpp.
template <class Stage>
concept stage = stage_element<typename Stage::input_type> && stage_element<typename Stage::output_type> &&
                requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in,
                         std::span<typename Stage::output_type> out) {
                  { stage.input_size() } -> std::convertible_to<std::size_t>;
                  { stage.output_size() } -> std::convertible_to<std::size_t>;
                  stage.forward(microbatch, in, out);
                } &&
                (has_backward<Stage> || has_gradients_apart<Stage>);

/// A stage with `forget` and `recompute`.
template <class Stage>
concept has_recompute = requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in) {
  stage.forget(microbatch);
  stage.recompute(microbatch, in);
};

/// A stage with `stage_number`.
template <class Stage>
concept has_stage_number = requires(const Stage& stage) {
  { stage.stage_number() } -> std::convertible_to<int>;
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
