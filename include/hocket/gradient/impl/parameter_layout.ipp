// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/parameter_layout.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

HOCKET_DECL parameter_layout::parameter_layout(std::vector<parameter> in_forward_order, const bucket_limits& limits)
    : parameters_(std::move(in_forward_order)), limits_(limits), ranges_(parameters_.size()),
      bucket_of_(parameters_.size()) {
  check();
  std::size_t limit = limits.first_elements;
  for (std::size_t i = parameters_.size(); i-- > 0;) {
    const bool ends_unit = i + 1 < parameters_.size() && parameters_[i + 1].begins_unit;
    const bool closed = buckets_.empty() || buckets_.back().size >= limit || ends_unit;
    if (closed) {
      if (!buckets_.empty()) limit = limits.elements;
      buckets_.push_back({size_, 0});
      members_.emplace_back();
    }
    ranges_[i] = {size_, parameters_[i].elements};
    bucket_of_[i] = buckets_.size() - 1;
    members_.back().push_back(i);
    size_ += rounded(parameters_[i].elements);
    buckets_.back().size = size_ - buckets_.back().first;
  }
}

HOCKET_DECL void parameter_layout::check() const {
  constexpr std::size_t largest_element = 512;
  std::size_t room = std::numeric_limits<std::size_t>::max() / 2 / largest_element;
  std::unordered_set<std::string_view> names;
  for (const parameter& each : parameters_) {
    if (each.elements > room || rounded(each.elements) > room) {
      raise(errc::invalid_argument,
            detail::concat({"parameter '", each.name, "' has ", each.elements,
                            " elements: too many, with the parameters before it, for the address space"}));
    }
    room -= rounded(each.elements);
    if (names.insert(each.name).second) continue;
    raise(errc::invalid_argument,
          detail::concat({"two parameters are called '", each.name, "': give each a different name"}));
  }
}

HOCKET_DECL std::string parameter_layout::describe(std::size_t i) const {
  const parameter& each = parameters_[i];
  return detail::concat(
      {"parameter ", i, " '", each.name, "' of ", each.elements, " elements in bucket ", bucket_of_[i],
       each.counts_in_norm ? "" : ", not in norms", each.decays ? "" : ", not decayed",
       each.begins_unit ? ", first of a unit" : "",
       each.model_ranks > 1 ? detail::concat({", on ", each.model_ranks, " ranks of the model"}) : ""});
}

HOCKET_DECL std::size_t parameter_layout::find(std::string_view name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return i;
  }
  raise(errc::invalid_argument, detail::concat({"no parameter of this layout is called '", name,
                                                "': pass the name of one of its ", parameters_.size(), " parameters"}));
}

HOCKET_END_NAMESPACE
