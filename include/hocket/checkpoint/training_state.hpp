// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The parameters and the optimizer of a training as parts of a checkpoint's state. Each rank saves what it stores, at
/// any ZeRO stage; any number of ranks at any stage loads it into place.
///
/// @code
/// hocket::checkpoint::state now;
/// add_parameters(now, parameters);
/// add_optimizer(now, optimizer);
/// saved.save(step, now);
/// @endcode
#pragma once

#include <hocket/checkpoint/element_type.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <cstddef>
#include <span>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

namespace detail {

/// Adds stored parts of arrays, each as the tensor "array/parameter" of one dimension.
class stored_part_adder {
 public:
  explicit stored_part_adder(state& to) noexcept : to_(to) {}

  template <class F>
  void operator()(const std::string& array, const parameter& of, std::size_t first, std::span<F> values) const {
    to_.add({.name = array + '/' + of.name,
             .type = element_type_of<F>(),
             .extents = {of.elements},
             .where = {{first}, {values.size()}},
             .data = reinterpret_cast<std::byte*>(values.data()),
             .is_copy = !of.counts_in_norm});
  }

 private:
  state& to_;
};

}  // namespace detail

/// Adds what this rank stores of `parameters`, of type `flat_parameters`, as tensors "parameter/NAME". Copies of a
/// parameter that do not count in norms (see `parameter::counts_in_norm`) are loaded, but need not be saved. Releases
/// gathered buckets; the state refers to the memory of `parameters`. Names and sizes of parameters must be equal on the
/// ranks that have them.
template <class Parameters>
void add_parameters(state& to, Parameters& parameters) {
  parameters.visit_stored(detail::stored_part_adder(to));
}

/// Adds what this rank stores of the states of `of`, an `optimizer`, as tensors such as "first moment/NAME", and the
/// number of its steps. The state refers to the memory of `of`.
template <class Optimizer>
void add_optimizer(state& to, Optimizer& of) {
  of.visit_stored(detail::stored_part_adder(to));
  to.add("optimizer steps", of.stored_steps());
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
