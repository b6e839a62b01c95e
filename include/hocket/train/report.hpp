// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What `train_distributed` is asked for, and what it returns.
#pragma once

#include <hocket/core/config.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace train {

/// The number of ranks, each of which trains with its share of every batch.
struct nodes {
  int count = 3;
};

/// Where a model computes.
enum class device : unsigned char {
  cpu,
  any,  ///< a GPU if there is one that the model can use, else the CPU
  gpu   ///< a GPU, or an error
};

struct train_options {
  std::uint64_t batch = 256;    ///< samples of a step over all ranks: equal for every number of ranks
  std::uint64_t epochs = 1;     ///< how often each sample is used
  double learning_rate = 1e-3;  ///< of AdamW
  double weight_decay = 0;
  std::uint64_t seed = 1;  ///< of the order of samples and of the initial values
  device where = device::cpu;
  bool shows_progress = true;  ///< of rank 0, on standard error
  std::string log{};           ///< folder for a log of JSON lines of each rank; empty: none
  std::string tensorboard{};   ///< folder for events of rank 0; empty: none
  /// Folder from whose newest checkpoint the training continues, and to which it saves; empty: none. Model, seed, batch
  /// and number of samples must be those of the checkpoint; `learning_rate` and the number of ranks may change, and
  /// `epochs` too, but not to fewer than the checkpoint has. If it has all of them, nothing is left to do: the report
  /// has its parameters, and 0 samples.
  std::string checkpoints{};
  std::uint64_t checkpoint_every = 100;  ///< steps between checkpoints; there is one more at the end
  /// Longest wait of a rank for others, a batch or a checkpoint. An error still waits for the source's `append` of one
  /// sample, if that is in progress.
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
};

/// What happened.
struct report {
  std::string model_name;
  int nodes_used = 0;
  std::string device;         ///< "cpu" or "gpu"
  std::string status;         ///< "distributed_trained", or with a GPU "distributed_trained_with_acceleration"
  std::uint64_t steps = 0;    ///< of all epochs, also those before a restart
  std::uint64_t samples = 0;  ///< used by this call
  double first_loss = 0;      ///< mean over the samples of the first step of this call
  double loss = 0;            ///< mean over the samples of the last epoch, as they were used
  double seconds = 0;         ///< of the training
  double samples_per_second = 0;
  double communication_seconds = 0;  ///< in which rank 0 waited for sums
  std::vector<float> parameters;     ///< of the model, one array after the other
};

}  // namespace train
HOCKET_END_NAMESPACE
