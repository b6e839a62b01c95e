// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_64_bit_integer_trial(any_communicator comm, const subject& what) {
  return what.type == datatype::int64 ? make_reduction_trial<std::int64_t>(comm, what)
                                      : make_reduction_trial<std::uint64_t>(comm, what);
}

}  // namespace perf
