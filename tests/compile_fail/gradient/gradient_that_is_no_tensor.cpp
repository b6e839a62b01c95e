// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the gradient must be a tensor, whose type specifies its placements
//
// The type of a vector does not specify whether the gradient was reduced before.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

#include <vector>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients, const std::vector<float>& gradient) {
  hocket::add_gradient<"dp">(gradients, 0, gradient);
}
