// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: has been reduced along a data axis, and the accumulator would add it once per rank
//
// All ranks of dp already have the sum, so that a second reduction would add copies.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<float, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>& gradient) {
  hocket::add_gradient<"dp">(gradients, 0, gradient);
}
