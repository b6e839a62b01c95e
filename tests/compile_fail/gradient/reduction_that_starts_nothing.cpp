// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the members of a reduction must return an object with test.. and wait..
//
// A reduction that sends buckets must report when they have arrived.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  struct sends_nothing {
    int all_reduce(const hocket::local::communicator&, std::size_t, std::span<float>, const hocket::options<>&,
                   const std::source_location&) const {
      return 0;
    }
  };
  hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<0>, hocket::options<>{},
                           sends_nothing());
}
