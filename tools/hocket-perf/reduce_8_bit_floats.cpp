// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_8_bit_float_trial(any_communicator comm, const subject& what) {
  return what.type == datatype::float8_e4m3 ? make_reduction_trial<hocket::float8_e4m3>(comm, what)
                                            : make_reduction_trial<hocket::float8_e5m2>(comm, what);
}

}  // namespace perf
