// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the lengths of blocks as hocket::send_counts\{lengths\}, hocket::receive_counts\{lengths\}
//
// The types of the two arguments prevent that they are exchanged.
#include <hocket/hocket.hpp>

#include <cstddef>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out,
            const std::vector<std::size_t>& lengths) {
  hocket::all_to_all_v(comm, in, out, hocket::receive_counts{lengths}, hocket::send_counts{lengths});
}
