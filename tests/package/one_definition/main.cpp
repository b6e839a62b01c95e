// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Uses the library together with unit.cpp, one of them compiled with NDEBUG: see ../one_definition.sh. With SAME_LEVEL,
// both have the same assertion level, and share communicators and types of errors.
#include "unit.hpp"

#include <cstdio>
#include <system_error>

#if defined(SAME_LEVEL)
using caught = hocket::error;
#else
using caught = std::system_error;
#endif

static bool is_caught() {
  try {
    raise_in_unit();
  } catch (const caught& found) {
    return std::string(found.what()).find("raised in the unit") != std::string::npos;
  }
}

static bool is(bool right, const char* what) {
  if (!right) std::printf("wrong: %s\n", what);
  return right;
}

int main() {
  bool right = is(facts_of_unit() == facts(), "the results of the two units differ");
  right = is(is_caught(), "the error of the unit") && right;
#if defined(SAME_LEVEL)
  hocket::local::run(3, [&](const hocket::local::communicator& comm) {
    std::vector<int> sum{sum_in_unit(comm, comm.rank() + 1)};
    hocket::all_reduce(comm, hocket::in_place(sum), std::plus<>{});
    if (comm.rank() == 0) right = is(sum.front() == 18, "the calls of two units on one communicator") && right;
  });
#endif
  return right ? 0 : 1;
}
