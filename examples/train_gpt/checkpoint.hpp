// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which training a checkpoint is of. Any mesh can continue it, but only with the same model, seed and precision: these
/// are texts of the checkpoint.
#pragma once

#include "shape.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gpt {

/// What must be equal when a training continues.
struct training_identity {
  model_shape shape;
  std::uint64_t seed = 0;
  bool narrow = false;    ///< parameters in bfloat16
  double loss_scale = 0;  ///< the current one; 0: the loss is not scaled. Only whether it is scaled must be equal.
};

using checkpoint_text = std::map<std::string, std::string>;

checkpoint_text text_of(const training_identity& of);

/// Returns whether `folder` has a checkpoint.
bool has_checkpoint(const std::string& folder);

/// Returns the number of steps of the newest checkpoint in `folder`. Throws if there is none, or if it is of a training
/// with another identity; whether its tensors are whole shows only when they are loaded.
int steps_of_newest(const std::string& folder, const training_identity& wanted);

}  // namespace gpt
