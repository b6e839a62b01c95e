// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One rank's view of a measured collective, which hides element type and buffers. So the measuring loop is compiled
/// once, and the types in separate files.
#pragma once

#include "pattern.hpp"
#include "settings.hpp"

#include <hocket/group/local.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/ucx.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace perf {

/// A non-owning reference to a communicator of either kind.
using any_communicator = std::variant<const hocket::local::communicator*, const hocket::ucx::communicator*>;

/// The measured collective and its parameters. Equal on all ranks.
struct subject {
  collective what = collective::all_reduce;
  operation op = operation::sum;
  datatype type = datatype::float32;
  int root = 0;
  bool shared_memory = false;
  memory buffers = memory::host;
  distribution blocks = distribution::linear;            ///< of calls with counts
  std::optional<hocket::plan::any_algorithm> algorithm;  ///< none: hocket chooses
};

class trial {
 public:
  trial() = default;
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;
  virtual ~trial() = default;

  /// Returns whether the collective supports this placement.
  virtual bool has(placement where) const = 0;
  /// Allocates buffers for blocks of up to `elements` elements, or of this mean if the call has counts. Collective.
  virtual void reserve(std::size_t elements) = 0;
  /// Sets the number of elements per block, or their mean if the call has counts, for the following calls.
  virtual void resize(std::size_t elements) = 0;
  /// Writes this rank's contribution, and wrong values to the place of the result.
  virtual void write(placement where, contents values) = 0;
  /// Makes the measured call.
  virtual void run(placement where) = 0;
  /// Returns the number of wrong elements in the result.
  virtual std::uint64_t count_wrong(placement where, contents values) const = 0;
  /// Returns whether a call leaves the contribution unchanged.
  virtual bool keeps_contribution(placement where) const = 0;
  /// Corrupts up to `elements` elements of the result.
  virtual void spoil(placement where, std::size_t elements) = 0;
  /// Evicts the buffers from the caches.
  virtual void chill() = 0;
  /// Explains how hocket selects an algorithm.
  virtual std::string explain() const = 0;
};

/// Each of these covers the types of one source file.
std::unique_ptr<trial> make_moving_trial(any_communicator comm, const subject& what);
std::unique_ptr<trial> make_integer_trial(any_communicator comm, const subject& what);
std::unique_ptr<trial> make_float_trial(any_communicator comm, const subject& what);

std::unique_ptr<trial> make_trial(any_communicator comm, const subject& what);

}  // namespace perf
