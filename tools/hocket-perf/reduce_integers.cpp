// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_trial.hpp"

namespace perf {

std::unique_ptr<trial> make_integer_trial(any_communicator comm, const subject& what) {
  switch (what.type) {
    case datatype::int8: return make_reduction_trial<std::int8_t>(comm, what);
    case datatype::uint8: return make_reduction_trial<std::uint8_t>(comm, what);
    case datatype::int32: return make_reduction_trial<std::int32_t>(comm, what);
    case datatype::uint32: return make_reduction_trial<std::uint32_t>(comm, what);
    case datatype::int64: return make_reduction_trial<std::int64_t>(comm, what);
    default: return make_reduction_trial<std::uint64_t>(comm, what);
  }
}

}  // namespace perf
