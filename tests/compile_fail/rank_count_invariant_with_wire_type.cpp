// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: exclude each other
//
// Elements that are rounded before they are sent are rounded as often as there are ranks.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{},
                     hocket::with(hocket::require(hocket::rank_count_invariant), hocket::wire<hocket::bfloat16>));
}
