// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: has been reduced along a data axis
//
// A gradient that all_reduce made invariant is already a sum.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<float, extents<dynamic>, ranks, on<"dp", invariant>, on<"tp", invariant>>& gradient) {
  hocket::add_gradient<"dp">(gradients, 0, gradient);
}
