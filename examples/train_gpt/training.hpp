// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Training over a mesh of data-, pipeline- and tensor-parallel ranks.
///
/// Initial parameters are a function of the seed and the parameter; the sequences of a step are a function of the seed
/// and the step. Neither depends on the mesh. With `exact`, losses and parameters have the same bits on every mesh, at
/// every ZeRO stage, and for any number of microbatches.
#pragma once

#include "checkpoint.hpp"
#include "shape.hpp"
#include "text.hpp"

#include <hocket/observe/registry.hpp>
#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/timeline.hpp>
#include <hocket/ucx.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpt {

/// How ranks share the work. Must be equal on all ranks.
struct parallelism {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  int zero = 0;
  int hybrid = 0;            ///< data-parallel ranks over which `zero` shards a copy; other groups have copies; 0: all
  int microbatches = 1;      ///< of each pass of the pipeline
  int passes = 1;            ///< of the pipeline per step; their gradients are added
  bool spread_rows = false;  ///< sequence parallelism: each tensor-parallel rank stores some rows between blocks

  /// Number of parts into which the sequences of a step are divided, over all ranks.
  int parts() const noexcept { return data * microbatches * passes; }
  int ranks() const noexcept { return data * pipeline * tensor; }
  /// Number of data-parallel ranks that share one sharded copy, and number of copies.
  int shards() const noexcept { return hybrid > 0 ? hybrid : data; }
  int replicas() const noexcept { return data / shards(); }
};

struct training_options {
  model_shape shape;
  parallelism spread;
  int steps = 800;
  int sequences = 32;  ///< of a step, over all ranks
  double learning_rate = 3e-3;
  double clip = 1;
  double weight_decay = 0.1;
  std::uint64_t seed = 1;
  std::vector<std::string> data;  ///< files of tokens for training: see token_data.hpp; empty: the text
  bool exact = false;
  bool narrow = false;       ///< parameters in bfloat16, with a float copy in the optimizer's states
  bool narrow_wire = false;  ///< gradients are sent as bfloat16
  bool on_device = false;    ///< gradients are added over ranks in GPU memory
  double loss_scale = 0;     ///< initial value; 0: none
  int fail_in_step = 0;      ///< step, from 1, in which the last stage of one rank throws, as a test; 0: none
};

/// The results of one step. Equal on all ranks, except for the times, which are this rank's.
struct step_record {
  double loss = 0;  ///< mean over all predicted bytes, in nats
  double gradient_norm = 0;
  bool finite = true;  ///< whether the gradient was finite on every rank; otherwise the step was skipped
  bool stop = false;   ///< whether any rank requested this step to be the last
  double loss_scale = 1;
  double learning_rate = 0;
  bool overlapped = true;  ///< whether gradients were sent during the backward pass
  double seconds = 0;
  double gradient_seconds = 0;  ///< of them: waiting for gradients of other ranks, not hidden by the backward pass
  double tensor_seconds = 0;    ///< sums over the tensor-parallel ranks
  double pipeline_seconds = 0;  ///< between stages: waiting for activations and gradients, bubbles included

  double communication_seconds() const noexcept { return gradient_seconds + tensor_seconds + pipeline_seconds; }
};

/// Bytes that a rank exchanges with others, by purpose.
struct traffic_by_use {
  double gradients = 0;  ///< and parameters
  double pipeline = 0;   ///< activations and their gradients, between stages
  double tensor = 0;     ///< sums over blocks

  double total() const noexcept { return gradients + pipeline + tensor; }
  friend traffic_by_use operator-(const traffic_by_use& later, const traffic_by_use& earlier) noexcept {
    return {later.gradients - earlier.gradients, later.pipeline - earlier.pipeline, later.tensor - earlier.tensor};
  }
};

/// A training that continues.
struct resumed {
  int steps = 0;                     ///< taken before
  std::vector<std::string> refused;  ///< newer checkpoints that are damaged, with the reasons
};

/// @param loss_scale the current one; 0: none
training_identity identity_of(const training_options& options, double loss_scale);

/// A rank's part of the training.
class trainer {
 public:
  /// Collective over `comm`, which must outlive the trainer and have `options.spread.ranks()` ranks.
  /// @param schedule for `spread.pipeline` ranks and `spread.microbatches` microbatches
  trainer(const hocket::ucx::communicator& comm, const training_options& options,
          const hocket::plan::pipeline::schedule& schedule);
  ~trainer();

  /// Takes step `number`, counted from 0. Collective over all ranks. An exception on one rank fails the step on all.
  /// @param stop whether this rank requests it to be the last
  /// @param overlaps whether gradients are sent during the backward pass; otherwise after it, for comparison
  step_record step(byte_span text, int number, bool stop, bool overlaps = true);

  /// Writes a checkpoint after `steps` steps into `folder`, which all ranks must be able to access. Collective.
  void save(const std::string& folder, int steps);
  /// Loads the newest checkpoint in `folder` that is not damaged, written on any mesh. Collective.
  resumed resume(const std::string& folder);

  /// Bytes that this rank stores between steps: as counted, the maximum, and by the formula.
  std::size_t bytes() const;
  std::size_t peak_bytes() const;
  std::size_t predicted_bytes() const;
  /// Returns the traffic of this rank per step, by the formulas.
  traffic_by_use predicted_traffic() const;
  /// Waits for all transfers and returns the traffic so far; small sums of norms and counts are part of `gradients`.
  /// Collective.
  traffic_by_use moved();
  /// Shows this rank's communication, and what it stores.
  void watch(hocket::observe::registry& metrics) const;
  /// Number of steps that were skipped because a gradient was not finite.
  long long skipped() const noexcept;

  /// Returns the computations of each stage in the last step, on all pipeline ranks of this rank's copy. Collective.
  hocket::plan::pipeline::timeline measured();
  /// The schedule with its messages.
  const hocket::plan::pipeline::schedule& plan() const;

  /// Returns the parameters of the whole model, as `entries_of` lists them for all layers and blocks. Collective.
  std::vector<std::vector<float>> all_parameters();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace gpt
