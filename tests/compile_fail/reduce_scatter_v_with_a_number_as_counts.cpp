// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the lengths of the ranks.{1,2} blocks as hocket::counts\{lengths\}
//
// reduce_scatter takes one length for all blocks.
#include <hocket/hocket.hpp>

#include <cstddef>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out,
            const std::vector<std::size_t>& lengths) {
  static_cast<void>(lengths);
  hocket::reduce_scatter_v(comm, in, out, 3);
}
