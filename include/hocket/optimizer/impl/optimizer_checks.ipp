// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/optimizer/optimizer_checks.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/layout_agreement.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/optimizer/optimizer_checks.hpp>

#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

inline std::string described(const group_place& place) { return concat({"rank ", place.rank, " of ", place.size}); }

inline std::string described(const parameter_layout& layout) {
  return concat(
      {layout.parameters(), " parameters with ", layout.size(), " elements in ", layout.buckets(), " buckets"});
}

HOCKET_DECL void optimizer_checks::refuse(std::string why) const {
  raise(errc::invalid_argument, std::move(why), {.operation = "optimizer", .rank = self_.rank, .ranks = self_.size});
}

HOCKET_DECL void optimizer_checks::check_layouts(const parameter_layout& of_gradients,
                                                 const parameter_layout& of_parameters) const {
  if (of_gradients == of_parameters) return;
  refuse(concat({"the layout of the gradients, ", described(of_gradients), ", differs from that of the parameters, ",
                 described(of_parameters), ": ",
                 first_difference(text_of(of_gradients), text_of(of_parameters), "the former", "the latter"),
                 "; use the same layout for both"}));
}

HOCKET_DECL void optimizer_checks::check_numbers(double learning_rate, double factor) const {
  if (!is_finite(learning_rate)) refuse(concat({"learning_rate must be finite, got ", std::to_string(learning_rate)}));
  if (!is_finite(factor)) {
    refuse(concat({"the factor of the gradient must be finite, got ", std::to_string(factor),
                   ": the count is 0 if no rank had any token"}));
  }
}

HOCKET_DECL void optimizer_checks::refuse_ranks(const group_place& of_gradients, const group_place& of_parameters,
                                                const char* which) const {
  refuse(
      concat({"the gradients were made on ", described(of_gradients), ", the parameters on ", described(of_parameters),
              which, of_gradients == of_parameters ? ", but the groups have different members" : "",
              ": make both with the same ranks, in the same order"}));
}

}  // namespace detail
HOCKET_END_NAMESPACE
