// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The mesh has no axis "data".
#include <shard/setting_with_domains.hpp>

#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/typed.hpp>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients,
            const tensor<float, extents<dynamic>, ranks, on<"dp", partial<sum>>, on<"tp", invariant>>& gradient) {
  hocket::add_gradient<"data">(gradients, 0, gradient);
}
