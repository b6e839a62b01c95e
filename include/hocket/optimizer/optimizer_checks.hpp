// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks before an optimizer step: gradients of another layout or of other ranks, and factors that are not finite.
/// They do not depend on the types of parameters, gradients and rule, so they are compiled once.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Rank `rank` of a group of `size`.
struct group_place {
  int rank;
  int size;
  friend bool operator==(const group_place&, const group_place&) = default;
};

/// The checks on the rank `self`. Each raises `invalid_argument` if it fails.
class optimizer_checks {
 public:
  explicit optimizer_checks(const group_place& self) noexcept : self_(self) {}

  [[noreturn]] HOCKET_DETAIL_RARE void refuse(std::string why) const;
  void check_layouts(const parameter_layout& of_gradients, const parameter_layout& of_parameters) const;
  void check_numbers(double learning_rate, double factor) const;
  /// Reports that the groups of gradients and parameters differ.
  /// @param which text after the ranks of the parameters: "" or " of the replicas"
  [[noreturn]] HOCKET_DETAIL_RARE void refuse_ranks(const group_place& of_gradients, const group_place& of_parameters,
                                                    const char* which) const;

 private:
  group_place self_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/optimizer/impl/optimizer_checks.ipp>
#endif
