// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What an optimizer refuses before it takes a step: gradients of another layout or of other ranks, and factors that are
/// no numbers. None of it depends on the types of parameters, gradients and rule, so it is compiled once.
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

/// The checks of the rank at `self`. Each raises `invalid_argument` where they fail.
class optimizer_checks {
 public:
  explicit optimizer_checks(const group_place& self) noexcept : self_(self) {}

  [[noreturn]] HOCKET_DETAIL_RARE void refuse(std::string why) const;
  void check_layouts(const parameter_layout& of_gradients, const parameter_layout& of_parameters) const;
  void check_numbers(double learning_rate, double factor) const;
  /// Other ranks with as many others would take the step, and each its own.
  /// @param which behind the ranks of the parameters: "", or " of the replicas"
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
