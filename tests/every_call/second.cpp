// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "every_call/second.hpp"

#include "every_call/every_call.hpp"

int every_call::count_wrong_in_second(const hocket::local::communicator& comm) {
  return count_wrong<int>(comm, "int, threads");
}

#if defined(EVERY_CALL_OVER_UCX)
int every_call::count_wrong_in_second(const hocket::ucx::communicator& comm) {
  return count_wrong<int>(comm, "int, UCX");
}
#endif
