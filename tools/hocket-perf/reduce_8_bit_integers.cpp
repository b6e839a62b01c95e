// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_8_bit_integer_trial(any_communicator comm, const subject& what) {
  return what.type == datatype::int8 ? make_reduction_trial<std::int8_t>(comm, what)
                                     : make_reduction_trial<std::uint8_t>(comm, what);
}

}  // namespace perf
