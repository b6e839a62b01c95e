// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_float_trial(any_communicator comm, const subject& what) {
  switch (what.type) {
    case datatype::half: return make_reduction_trial<hocket::half>(comm, what);
    case datatype::bfloat16: return make_reduction_trial<hocket::bfloat16>(comm, what);
    case datatype::float32: return make_reduction_trial<float>(comm, what);
    case datatype::float64: return make_reduction_trial<double>(comm, what);
    case datatype::float8_e4m3: return make_reduction_trial<hocket::float8_e4m3>(comm, what);
    default: return make_reduction_trial<hocket::float8_e5m2>(comm, what);
  }
}

}  // namespace perf
