// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Storage of a rank's parameters, gradients and optimizer states, for any ZeRO stage, with gradients added as floats
/// or exactly: one interface, so that the model is compiled once, independently of these choices.
#pragma once

#include "device_sums.hpp"
#include "shape.hpp"

#include <hocket/checkpoint/state.hpp>
#include <hocket/observe/registry.hpp>
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
  int shards = 1;  ///< number of adjacent data-parallel ranks that share one sharded copy
  bool exact = false;
  bool narrow = false;                  ///< parameters in bfloat16, and a float copy in the optimizer's states
  bool narrow_wire = false;             ///< gradients are sent as bfloat16; not with `exact`
  std::shared_ptr<device_sums> device;  ///< device on which floats are added over ranks; null: host
  double clip = 1;                      ///< the largest norm of the mean gradient
  double weight_decay = 0.1;
  std::size_t bucket_bytes = std::size_t{256} << 10;
};

/// The results of one optimizer step. Equal on all ranks, except for the times.
struct step_found {
  double tokens = 0;
  double gradient_norm = 0;  ///< of the mean gradient, before clipping
  bool finite = true;        ///< otherwise the step was skipped
  double exposed_seconds = 0;
};

/// Parameters are numbered as `entries_of` lists them.
class training_memory {
 public:
  training_memory() = default;
  training_memory(const training_memory&) = delete;
  training_memory& operator=(const training_memory&) = delete;
  virtual ~training_memory() = default;

  /// Sets initial values, which must be equal on all ranks that have the parameter.
  virtual void set(std::size_t i, std::span<const float> values) = 0;
  /// Starts to gather `count` parameters from `first` on, which will be used, if they are sharded.
  virtual void fetch(std::size_t first, std::size_t count) = 0;
  /// Releases parameters that will not be used for some time.
  virtual void release(std::size_t first, std::size_t count) = 0;
  virtual std::span<const float> weights(std::size_t i) = 0;

  /// Begins pass number `pass` of the pipeline; a step has `of` passes.
  virtual void begin_pass(int pass, int of) = 0;
  virtual void add_gradient(std::size_t i, std::span<const float> gradient) = 0;
  /// Call after all microbatches of this pass have added their gradients of parameter `i`.
  virtual void ready(std::size_t i) = 0;
  /// Sets whether gradients are sent when they are ready, or all of them at the end of the pass.
  virtual void set_overlap(bool overlaps) = 0;
  /// @param tokens number of bytes that the microbatches of this rank predicted
  virtual void end_pass(double tokens) = 0;
  /// Sums gradients over the data-parallel ranks and takes the step. Collective over these and the ranks of the model.
  /// @param scale factor of the losses
  virtual step_found end_step(double scale, double learning_rate) = 0;

  /// Adds what this rank stores to the state of a checkpoint, which a save reads and loading writes. Collective.
  virtual void add_to(hocket::checkpoint::state& to) = 0;

  /// Revokes this rank's communicators; other ranks fail with `reason`.
  virtual void revoke(const std::string& reason) = 0;

  /// Bytes stored between steps, and the maximum, as counted.
  virtual std::size_t bytes() const = 0;
  virtual std::size_t peak_bytes() const = 0;
  /// Bytes stored between steps, by the formula.
  virtual std::size_t predicted_bytes() const = 0;
  /// Returns the bytes that this rank moves per step for gradients and parameters, by the formula.
  /// @param rounds number of forward and backward passes through the layers per step
  /// @param forward_only elements of parameters that the backward pass does not need
  virtual double predicted_traffic(int passes, int rounds, std::size_t forward_only) const = 0;
  /// Shows this rank's communication for gradients and parameters, and what it stores.
  virtual void watch(hocket::observe::registry& metrics) const = 0;
  /// Waits for transfers of the last step that are still in flight. Collective.
  virtual void settle() = 0;
  /// Returns the traffic of this rank for gradients and parameters so far.
  virtual hocket::traffic moved() const = 0;
};

using memory_maker = std::unique_ptr<training_memory>(const hocket::ucx::communicator& data,
                                                      const hocket::ucx::communicator& model,
                                                      const std::vector<entry>& entries, bool first_of_copies,
                                                      const memory_options& options);

/// @param data the ranks with the same part of the model
/// @param model the ranks with the same data
/// @param first_of_copies whether this rank counts for the norm if ranks of `model` have copies of a parameter
memory_maker make_memory;

// `make_memory` calls one of these. Each is in a separate file because it takes as long to compile as all other code.
memory_maker make_float_memory, make_bfloat16_memory, make_exact_float_memory, make_exact_bfloat16_memory;

}  // namespace gpt
