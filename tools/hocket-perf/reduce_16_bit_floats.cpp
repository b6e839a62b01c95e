// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_16_bit_float_trial(any_communicator comm, const subject& what) {
  return what.type == datatype::half ? make_reduction_trial<hocket::half>(comm, what)
                                     : make_reduction_trial<hocket::bfloat16>(comm, what);
}

}  // namespace perf
