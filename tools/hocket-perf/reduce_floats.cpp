// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_float_trial(any_communicator comm, const subject& what) {
  return what.type == datatype::float32 ? make_reduction_trial<float>(comm, what)
                                        : make_reduction_trial<double>(comm, what);
}

}  // namespace perf
