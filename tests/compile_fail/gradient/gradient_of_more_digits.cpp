// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: have more digits than the sums
//
// Each summand would be rounded before it is added.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

#include <vector>

using accumulator =
    decltype(hocket::gradients<float>(std::declval<const hocket::local::communicator&>(), hocket::parameter_layout(),
                                      hocket::last_microbatch, hocket::zero<0>));

void misuse(accumulator& gradients, const std::vector<long>& gradient) { gradients.add(0, gradient); }
