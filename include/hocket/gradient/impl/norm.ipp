// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/norm.hpp>: argument checks.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace detail {

HOCKET_DECL void check_model_ranks(const parameter_layout& layout, int ranks, const error_context& context) {
  for (std::size_t i = 0; i < layout.parameters(); ++i) {
    if (layout[i].model_ranks <= ranks) continue;
    raise(errc::invalid_argument,
          concat({"norm: parameter '", layout[i].name, "' has slices or copies on ", layout[i].model_ranks,
                  " ranks of the model, but the norm would be computed over ", ranks,
                  ": also pass the communicator of these ranks, as in norm(gradients, ranks.along<\"tp\">())"}),
          context);
  }
}

HOCKET_DECL void refuse_counting_twice(const error_context& context) {
  raise(errc::invalid_argument,
        "norm: the communicator of the model's ranks must not contain ranks over which the gradient was summed: their "
        "parts would count twice",
        context);
}

}  // namespace detail
HOCKET_END_NAMESPACE
