// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Initial values of parameters, and access to all values for each kind of sharding.
#pragma once

#include "gradient/step.hpp"

#include <hocket/gradient/parameter_layout.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace hocket_test::optimizer {

using gradient::magnitude;
using gradient::number;

template <class P>
std::vector<P> first_values(const hocket::parameter_layout& layout, std::size_t i) {
  std::vector<P> values;
  for (std::size_t e = 0; e < layout.of(i).size; ++e) {
    values.push_back(static_cast<P>(static_cast<float>(number(i * 100000 + e) / magnitude)));
  }
  return values;
}

template <class P, class Parameters>
void set_first_values(Parameters& parameters) {
  for (std::size_t i = 0; i < parameters.layout().parameters(); ++i) {
    parameters.set(i, std::span<const P>(first_values<P>(parameters.layout(), i)));
  }
}

/// Returns all parameters, gathered, in the layout's order, without gaps.
template <class Parameters>
auto all_values(Parameters& parameters) {
  std::vector<typename Parameters::value_type> values;
  for (std::size_t b = parameters.layout().buckets(); b-- > 0;) {
    if constexpr (Parameters::sharding::shards_parameters) parameters.gather(b);
  }
  for (std::size_t i = 0; i < parameters.layout().parameters(); ++i) {
    const auto part = parameters.of(i);
    values.insert(values.end(), part.begin(), part.end());
  }
  for (std::size_t b = 0; b < parameters.layout().buckets(); ++b) parameters.release(b);
  return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace hocket_test::optimizer
