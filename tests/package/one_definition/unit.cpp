// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "unit.hpp"

std::string facts_of_unit() { return facts(); }

void raise_in_unit() { hocket::raise(hocket::errc::timeout, "raised in the unit"); }

#if defined(SAME_LEVEL)
int sum_in_unit(const hocket::local::communicator& comm, int value) {
  std::vector<int> sum{value};
  hocket::all_reduce(comm, hocket::in_place(sum), std::plus<>{});
  return sum.front();
}
#endif
