// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: have more digits than the sums
//
// An exact sum of floats is not an exact sum of doubles.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator = decltype(hocket::gradients<hocket::exact_sum<float>>(
    std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(), hocket::last_microbatch,
    hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<double, extents<dynamic>, ranks, on<"dp", partial<sum>>, on<"tp", shard<0>>>& gradient) {
  hocket::add_gradient<"dp">(gradients, 0, gradient);
}
