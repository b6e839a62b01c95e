// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory.hpp"

namespace gpt {

std::unique_ptr<training_memory> make_memory(const hocket::ucx::communicator& data,
                                             const hocket::ucx::communicator& model, const std::vector<entry>& entries,
                                             bool first_of_copies, const memory_options& options) {
  const auto make = options.exact ? (options.narrow ? make_exact_bfloat16_memory : make_exact_float_memory)
                                  : (options.narrow ? make_bfloat16_memory : make_float_memory);
  return make(data, model, entries, first_of_copies, options);
}

}  // namespace gpt
