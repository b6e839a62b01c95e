// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Cuts a model into stages of consecutive layers, so that the slowest stage is as fast as possible. In a pipeline all
/// ranks wait for the slowest stage.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/schedule/costs.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {

/// Returns the first layer of each of `stages` stages. `layers` holds the cost of each layer, in any unit, none
/// negative. Every stage has at least one layer. Of all cuts with the fastest slowest stage, returns the one that fills
/// the first stages first. Cost: stages times the square of the number of layers.
constexpr std::vector<std::size_t> partition(const std::vector<double>& layers, std::size_t stages) {
  if (stages < 1 || stages > layers.size()) {
    raise(errc::invalid_argument, "partition needs at least one layer for each of the " + std::to_string(stages) +
                                      " stages, and at least one stage; found " + std::to_string(layers.size()) +
                                      " layers");
  }
  const std::size_t n = layers.size();
  std::vector<double> before(n + 1, 0);  // before[i]: the cost of all layers before layer i
  for (std::size_t i = 0; i < n; ++i) {
    if (!detail::is_time(layers[i])) detail::require_time(layers[i], "the cost of layer " + std::to_string(i));
    before[i + 1] = before[i] + layers[i];
  }
  if (!detail::is_time(before[n])) {
    raise(errc::invalid_argument, "partition: the costs of all layers have no finite sum; take a larger unit");
  }
  // slowest[k][i]: the slowest stage in the best cut of the layers from i on into k + 1 stages.
  std::vector<std::vector<double>> slowest(stages, std::vector<double>(n + 1, std::numeric_limits<double>::max()));
  for (std::size_t i = 0; i < n; ++i) slowest[0][i] = before[n] - before[i];
  for (std::size_t k = 1; k < stages; ++k) {
    for (std::size_t i = 0; i + k < n; ++i) {
      for (std::size_t next = i + 1; next + k <= n; ++next) {
        slowest[k][i] = std::min(slowest[k][i], std::max(before[next] - before[i], slowest[k - 1][next]));
      }
    }
  }
  std::vector<std::size_t> begins{0};
  for (std::size_t k = stages - 1; k > 0; --k) {
    std::size_t next = begins.back() + 1;
    const auto fits = [&](std::size_t end) {
      return std::max(before[end] - before[begins.back()], slowest[k - 1][end]) <= slowest[stages - 1][0];
    };
    for (std::size_t end = next; end + k <= n; ++end) {
      if (fits(end)) next = end;
    }
    begins.push_back(next);
  }
  return begins;
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
