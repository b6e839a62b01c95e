// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: in and out must have the same type of elements
//
// Elements are never converted implicitly.
#include <hocket/hocket.hpp>

#include <cstddef>
#include <vector>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out,
            const std::vector<std::size_t>& lengths) {
  static_cast<void>(out);
  std::vector<long double> wide(3);
  hocket::reduce_scatter_v(comm, in, wide, hocket::counts{lengths});
}
