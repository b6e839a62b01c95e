// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: calls with counts do not take in_place\(buffer\)
//
// Blocks have other positions in the output than in the input.
#include <hocket/hocket.hpp>

#include <cstddef>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out,
            const std::vector<std::size_t>& lengths) {
  static_cast<void>(in);
  hocket::all_to_all_v(comm, hocket::in_place(out), hocket::send_counts{lengths}, hocket::receive_counts{lengths});
}
