// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial result along an axis that is not a data axis
//
// The reduction over tp is missing, and the accumulator does not do it.
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<float, extents<dynamic>, ranks, on<"dp", partial<sum>>, on<"tp", partial<sum>>>& gradient) {
  hocket::add_gradient<"dp">(gradients, 0, gradient);
}
