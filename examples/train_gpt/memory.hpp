// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Where a rank's parameters, their gradients and the optimizer's states are kept, at any ZeRO stage, with gradients
/// added as floats or exactly: one interface, so that the model is compiled once and knows of none of that.
#pragma once

#include "device_sums.hpp"
#include "shape.hpp"

#include <hocket/ucx.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gpt {

struct memory_options {
  int zero = 0;
  int shards = 1;  ///< data-parallel ranks, next to each other, that share one copy of what is sharded
  bool exact = false;
  bool narrow = false;                  ///< parameters in bfloat16, and a wider copy with the optimizer's states
  bool narrow_wire = false;             ///< gradients travel as bfloat16; not with `exact`
  std::shared_ptr<device_sums> device;  ///< where floats are added up over ranks; null: on the host
  double clip = 1;                      ///< the largest norm of the mean gradient
  double weight_decay = 0.1;
  std::size_t bucket_bytes = std::size_t{256} << 10;
};

/// What one optimizer step found. Equal on all ranks, the times apart.
struct step_found {
  double tokens = 0;
  double gradient_norm = 0;  ///< of the mean gradient, before clipping
  bool finite = true;        ///< else the step was not taken
  double exposed_seconds = 0;
};

/// Consecutive elements of a parameter, or of what the optimizer keeps beside it: see hocket/optimizer/state.hpp.
struct saved_piece {
  std::string array;
  std::string parameter;
  std::size_t elements = 0;
  std::size_t first = 0;
  std::vector<float> values;
};

/// What a rank's memory has to keep so that training can go on, on this mesh or another.
struct saved_memory {
  std::uint64_t optimizer_steps = 0;
  std::vector<saved_piece> pieces;
};

/// Parameters are numbered as `entries_of` lists them.
class training_memory {
 public:
  training_memory() = default;
  training_memory(const training_memory&) = delete;
  training_memory& operator=(const training_memory&) = delete;
  virtual ~training_memory() = default;

  /// First values, equal on all ranks that have the parameter.
  virtual void set(std::size_t i, std::span<const float> values) = 0;
  /// The parameters from `first` on, `count` of them, will be used; fetches them where each rank has a part of them.
  virtual void fetch(std::size_t first, std::size_t count) = 0;
  /// They will not be used for a while.
  virtual void release(std::size_t first, std::size_t count) = 0;
  virtual std::span<const float> weights(std::size_t i) = 0;

  /// One pass of the pipeline, of which a step has `of`.
  virtual void begin_pass(int pass, int of) = 0;
  virtual void add_gradient(std::size_t i, std::span<const float> gradient) = 0;
  /// All microbatches of this pass have added theirs.
  virtual void ready(std::size_t i) = 0;
  /// Whether gradients leave when they are ready, or all of them at the end of the pass.
  virtual void set_overlap(bool overlaps) = 0;
  /// @param tokens that the microbatches of this rank predicted
  virtual void end_pass(double tokens) = 0;
  /// Adds up over the data-parallel ranks, and takes the step. Collective over these and the model's.
  /// @param scale what losses were multiplied with
  virtual step_found end_step(double scale, double learning_rate) = 0;

  /// This rank's part of what has to be kept; and going on from those of all ranks, of any mesh.
  virtual saved_memory state() = 0;
  virtual void restore(const saved_memory& from) = 0;

  /// Ends what this rank has under way with others, with a reason that they hear.
  virtual void revoke(const std::string& reason) = 0;

  /// Bytes that stay from step to step, and the most that there were, as counted.
  virtual std::size_t bytes() const = 0;
  virtual std::size_t peak_bytes() const = 0;
  /// What the formula says of the former.
  virtual std::size_t predicted_bytes() const = 0;
  /// What this rank moves in a step for gradients and parameters, by the formula.
  /// @param rounds how often a step goes through the layers, forward and backward
  /// @param forward_only elements of parameters that the backward pass does without
  virtual double predicted_traffic(int passes, int rounds, std::size_t forward_only) const = 0;
  /// Waits for what is still on its way of the last step. Collective.
  virtual void settle() = 0;
  /// What this rank has moved for them so far.
  virtual hocket::traffic moved() const = 0;
};

using memory_maker = std::unique_ptr<training_memory>(const hocket::ucx::communicator& data,
                                                      const hocket::ucx::communicator& model,
                                                      const std::vector<entry>& entries, bool first_of_copies,
                                                      const memory_options& options);

/// @param data the ranks with the same part of the model
/// @param model the ranks with the same data
/// @param first_of_copies whether this rank is the one that counts where ranks of `model` have copies
memory_maker make_memory;

// What `make_memory` chooses from. Each is in a file of its own, as it takes as long to compile as all the rest.
memory_maker make_float_memory, make_bfloat16_memory, make_exact_float_memory, make_exact_bfloat16_memory;

}  // namespace gpt
