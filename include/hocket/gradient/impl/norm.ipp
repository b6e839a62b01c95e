// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/norm.hpp>: what it refuses.
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
                  " ranks of the model, and the norm would be taken over ", ranks,
                  ": give it the communicator of all of them, too, as in norm(gradients, ranks.along<\"tp\">())"}),
          context);
  }
}

HOCKET_DECL void refuse_counting_twice(const error_context& context) {
  raise(errc::invalid_argument,
        "norm: the ranks that hold other parts of the model must not be among those that the gradient was added over: "
        "their parts would count twice",
        context);
}

}  // namespace detail
HOCKET_END_NAMESPACE
