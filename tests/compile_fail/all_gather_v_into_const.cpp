// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a buffer that receives a result must be writable
//
// The output buffer is const.
#include <hocket/hocket.hpp>

#include <cstddef>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out,
            const std::vector<std::size_t>& lengths) {
  static_cast<void>(out);
  hocket::all_gather_v(comm, in, in, hocket::counts{lengths});
}
