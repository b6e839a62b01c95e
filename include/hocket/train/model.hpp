// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What `train_distributed` trains: a type with parameters, a forward and a backward pass.
///
/// @code
/// struct line {                                     // y = a x + b
///   std::string name() const { return "line"; }
///   std::vector<hocket::train::model_parameter> parameters() const { return {{"a", 1, 0.1}, {"b", 1}}; }
///   double forward(const parameter_values& w, const batch& in);                      // the sum of losses
///   void backward(const parameter_values& w, const batch& in, const parameter_gradients& to);   // adds to `to`
/// };
/// @endcode
#pragma once

#include <hocket/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace train {

/// An array of numbers that a model learns.
struct model_parameter {
  std::string name;  ///< for checkpoints: parameters of a model have different names
  std::size_t elements = 0;
  /// Standard deviation of the initial values, which are drawn from a normal distribution around 0.
  double deviation = 0;
};

/// The values of all parameters, in the order of `parameters()`; and the sums of their gradients. Sums are of type
/// double, so that their order, and with it the number of ranks, all but never changes a bit of the parameters.
using parameter_values = std::vector<std::span<const float>>;
using parameter_gradients = std::vector<std::span<double>>;

template <class Model>
concept has_parameters = requires(const Model& of) {
  { of.parameters() } -> std::convertible_to<std::vector<model_parameter>>;
};
template <class Model>
concept has_name = requires(const Model& of) {
  { of.name() } -> std::convertible_to<std::string>;
};
/// `forward` returns the sum of the losses of a batch's samples, and may keep what `backward` of the same batch needs.
template <class Model, class Batch>
concept has_forward = requires(Model& of, const parameter_values& values, const Batch& in) {
  { of.forward(values, in) } -> std::convertible_to<double>;
};
/// `backward` adds the gradients of that sum to `to`.
template <class Model, class Batch>
concept has_backward = requires(Model& of, const parameter_values& values, const Batch& in,
                                const parameter_gradients& to) { of.backward(values, in, to); };

/// A model that learns from batches of type `Batch`. It is copied for each rank.
template <class Model, class Batch>
concept trainable = std::copy_constructible<Model> && has_name<Model> && has_parameters<Model> &&
                    has_forward<Model, Batch> && has_backward<Model, Batch>;

}  // namespace train
HOCKET_END_NAMESPACE
