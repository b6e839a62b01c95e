// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the operation comes before with
//
// Options are the last argument.
#include <hocket/hocket.hpp>

#include <cstddef>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out,
            const std::vector<std::size_t>& lengths) {
  hocket::reduce_scatter_v(comm, in, out, hocket::counts{lengths}, hocket::with(hocket::two_shot));
}
