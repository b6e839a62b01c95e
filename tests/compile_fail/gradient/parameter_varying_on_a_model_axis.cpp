// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this parameter is varying along an axis that is not a data axis
//
// It is unknown whether a norm must count its elements on each rank, or on one rank.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/typed.hpp>

hocket::parameter misuse(
    const tensor<float, extents<dynamic>, ranks, on<"dp", invariant>, on<"tp", varying>>& weights) {
  return hocket::parameter_of<"dp">("weights", weights);
}
