// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: is a mean, or another partial result, along a data axis
//
// Means can't be added up over ranks; sums and counts can.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<float, extents<dynamic>, ranks, on<"dp", partial<mean>>, on<"tp", invariant>>& gradient) {
  hocket::add_gradient<"dp">(gradients, 0, gradient);
}
