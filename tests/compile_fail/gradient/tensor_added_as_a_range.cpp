// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: gradients.add.i, gradient.: the gradient must be a contiguous range of numbers
//
// add() would ignore the tensor's type, which specifies whether it was reduced before.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<float, extents<dynamic>, ranks, on<"dp", invariant>, on<"tp", invariant>>& gradient) {
  gradients.add(0, gradient);
}
