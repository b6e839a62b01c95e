// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One rank's view of what is measured: a collective on buffers of some type, both out of sight. So the loop that
/// measures is compiled once, and the types in files of their own.
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

/// Both kinds of communicators. Borrowed.
using any_communicator = std::variant<const hocket::local::communicator*, const hocket::ucx::communicator*>;

enum class placement { out_of_place, in_place };

/// Which collective, on what. Equal on all ranks.
struct subject {
  collective what = collective::all_reduce;
  operation op = operation::sum;
  datatype type = datatype::float32;
  int root = 0;
  bool shared_memory = false;
  memory buffers = memory::host;
  std::optional<hocket::plan::any_algorithm> algorithm;  ///< none: hocket chooses
};

class trial {
 public:
  trial() = default;
  trial(const trial&) = delete;
  trial& operator=(const trial&) = delete;
  virtual ~trial() = default;

  /// Whether the collective has this form.
  virtual bool has(placement where) const = 0;
  /// Makes room for blocks of up to so many elements. Collective.
  virtual void reserve(std::size_t elements) = 0;
  /// From now on blocks have so many elements.
  virtual void resize(std::size_t elements) = 0;
  /// Writes this rank's contribution, and nonsense to where the result will be.
  virtual void write(placement where, contents values) = 0;
  /// The call that is measured.
  virtual void run(placement where) = 0;
  /// Elements of the result that are not what they must be.
  virtual std::uint64_t count_wrong(placement where, contents values) const = 0;
  /// Whether the contribution is still there after a call.
  virtual bool keeps_contribution(placement where) const = 0;
  /// Changes up to so many elements of the result.
  virtual void spoil(placement where, std::size_t elements) = 0;
  /// Puts the buffers out of the caches.
  virtual void chill() = 0;
  /// How hocket chooses an algorithm.
  virtual std::string explain() const = 0;
};

/// Each knows the types of one file.
std::unique_ptr<trial> make_moving_trial(any_communicator comm, const subject& what);
std::unique_ptr<trial> make_integer_trial(any_communicator comm, const subject& what);
std::unique_ptr<trial> make_float_trial(any_communicator comm, const subject& what);

std::unique_ptr<trial> make_trial(any_communicator comm, const subject& what);

}  // namespace perf
