// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Parameters for opening a communicator of some ranks of another communicator.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class State>
std::vector<int> all_ranks(const State& state) {
  std::vector<int> result(static_cast<std::size_t>(state.size()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

/// `chosen` lists ranks of `state`, including this one, in their new order. The caller must set the result's context.
template <class State>
transport::open_parameters open_parameters_of(const State& state, const std::vector<int>& chosen,
                                              transport::exchange_function exchange) {
  auto members = std::make_shared<std::vector<int>>();
  for (const int rank : chosen) members->push_back((*state.members())[static_cast<std::size_t>(rank)]);
  transport::open_parameters how;
  how.rank = static_cast<int>(std::find(chosen.begin(), chosen.end(), state.rank()) - chosen.begin());
  how.members = std::move(members);
  how.exchange = std::move(exchange);
  return how;
}

}  // namespace detail
HOCKET_END_NAMESPACE
