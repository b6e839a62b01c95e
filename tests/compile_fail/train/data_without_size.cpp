// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the data needs size.., batch_type with clear.., and append.sample, batch.
//
// Samples that can be made into batches, but not counted.
#include <hocket/train.hpp>

#include <cstdint>

using namespace hocket::train;

void misuse(const mlp& model) {
  struct uncounted {
    using batch_type = number_batch;
    void append(std::uint64_t, batch_type&) const {}
  };
  train_distributed(model, uncounted());
}
