// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "memory_of.hpp"

namespace gpt {

std::unique_ptr<training_memory> make_exact_float_memory(const hocket::ucx::communicator& data,
                                                         const hocket::ucx::communicator& model,
                                                         const std::vector<entry>& entries, bool first_of_copies,
                                                         const memory_options& options) {
  return make_memory_of<hocket::exact_sum<float>, float>(data, model, entries, first_of_copies, options);
}

}  // namespace gpt
