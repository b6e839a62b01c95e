// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Training over a mesh of data-, pipeline- and tensor-parallel ranks.
///
/// First parameters are a function of the seed and of which parameter it is; the sequences of a step are one of the
/// seed and of the step. Neither knows of the mesh. With `exact`, losses and parameters have the same bits on every mesh,
/// at every ZeRO stage, and for any number of microbatches.
#pragma once

#include "shape.hpp"
#include "text.hpp"

#include <hocket/schedule/schedule.hpp>
#include <hocket/schedule/timeline.hpp>
#include <hocket/ucx.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gpt {

/// How ranks share the work. All of it must be equal on all ranks.
struct parallelism {
  int data = 1;
  int pipeline = 1;
  int tensor = 1;
  int zero = 0;
  int hybrid = 0;            ///< data-parallel ranks that `zero` deals one copy to, others hold further ones; 0: all
  int microbatches = 1;      ///< of each pass of the pipeline
  int passes = 1;            ///< of the pipeline in a step, whose gradients are added up
  bool spread_rows = false;  ///< sequence parallelism: tensor-parallel ranks keep some rows each between blocks

  /// That the sequences of a step are cut into, over all ranks.
  int parts() const noexcept { return data * microbatches * passes; }
  int ranks() const noexcept { return data * pipeline * tensor; }
  /// How many data-parallel ranks what is sharded is dealt to, and how many copies of it there are.
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
  bool exact = false;
  bool narrow = false;       ///< parameters in bfloat16, with a wider copy beside the optimizer's states
  bool narrow_wire = false;  ///< gradients travel as bfloat16
  bool on_device = false;    ///< gradients are added up over ranks in memory of a GPU
  double loss_scale = 0;     ///< the first one; 0: none
  int fail_in_step = 0;      ///< counted from 1: the last stage of one rank throws in it, to see what happens then
};

/// One step, as all ranks know it; the seconds are this rank's.
struct step_record {
  double loss = 0;  ///< mean over all predicted bytes, in nats
  double gradient_norm = 0;
  bool finite = true;  ///< whether the gradient was, on every rank; else the step was skipped
  bool stop = false;   ///< whether any rank wanted this step to be the last
  double loss_scale = 1;
  bool overlapped = true;  ///< whether gradients left while the backward pass still ran
  double seconds = 0;
  double gradient_seconds = 0;  ///< of them: waiting for gradients of other ranks, that no backward pass hides
  double tensor_seconds = 0;    ///< sums over the tensor-parallel ranks
  double pipeline_seconds = 0;  ///< between stages: waiting for activations and gradients, bubbles included

  double communication_seconds() const noexcept { return gradient_seconds + tensor_seconds + pipeline_seconds; }
};

/// Bytes that a rank moves to or from others, by what they are for.
struct traffic_by_use {
  double gradients = 0;  ///< and parameters
  double pipeline = 0;   ///< activations and their gradients, between stages
  double tensor = 0;     ///< sums over blocks

  double total() const noexcept { return gradients + pipeline + tensor; }
  friend traffic_by_use operator-(const traffic_by_use& later, const traffic_by_use& earlier) noexcept {
    return {later.gradients - earlier.gradients, later.pipeline - earlier.pipeline, later.tensor - earlier.tensor};
  }
};

/// A rank's part of the training.
class trainer {
 public:
  /// Collective over `comm`, which must outlive it and have `options.spread.ranks()` ranks.
  /// @param schedule for `spread.pipeline` ranks and `spread.microbatches` microbatches
  trainer(const hocket::ucx::communicator& comm, const training_options& options,
          const hocket::plan::pipeline::schedule& schedule);
  ~trainer();

  /// Takes step `number`, from 0. Collective over all ranks. What is thrown on one of them, all others hear of, in
  /// this step.
  /// @param stop whether this rank wants it to be the last
  /// @param overlaps whether gradients leave while the backward pass still runs; else after it, to compare
  step_record step(byte_span text, int number, bool stop, bool overlaps = true);

  /// Writes what it takes to go on after `steps` steps into `folder`, which all ranks must see. Collective.
  void save(const std::string& folder, int steps);
  /// Goes on from what any mesh wrote. Returns how many steps were taken. Collective.
  int resume(const std::string& folder);

  /// What this rank keeps from step to step, in bytes: as counted, at most, and by the formula.
  std::size_t bytes() const;
  std::size_t peak_bytes() const;
  std::size_t predicted_bytes() const;
  /// What this rank moves in a step, by the formulas.
  traffic_by_use predicted_traffic() const;
  /// What it has moved so far, once all is there; small sums of norms and counts are with the gradients. Collective.
  traffic_by_use moved();
  /// Steps that were skipped, as a gradient was not finite.
  long long skipped() const noexcept;

  /// When each stage computed what in the last step, of all pipeline ranks of this rank's copy. Collective.
  hocket::plan::pipeline::timeline measured();
  /// The schedule with its messages.
  const hocket::plan::pipeline::schedule& plan() const;

  /// The parameters of the whole model, as `entries_of` lists them for all layers and blocks. Collective.
  std::vector<std::vector<float>> all_parameters();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace gpt
