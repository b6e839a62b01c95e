// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The agreement of the ranks of a pipeline before its first step. A schedule or a stage that differs between ranks
/// would otherwise cause a hang or overwritten memory. So it is an error, on every rank, that names the difference.
///
/// Each round is a list of numbers. Each entry is written by one rank and is 0 on all others, so that the sum over all
/// ranks has the entries of all.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/pipeline/any_stage.hpp>
#include <hocket/schedule/fingerprint.hpp>
#include <hocket/schedule/placement.hpp>
#include <hocket/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline::detail {

/// First round: the schedule of each rank, whether the rank has found an error, and the distance to the oldest tag that
/// it still has.
class schedule_round {
 public:
  schedule_round() = default;
  explicit schedule_round(int ranks) : numbers_(per_rank * static_cast<std::size_t>(ranks), 0) {}

  void describe_own(int rank, const plan::pipeline::schedule& plan, bool fits, std::uint32_t reach) {
    std::uint64_t* const own = &numbers_[per_rank * static_cast<std::size_t>(rank)];
    own[print] = plan::pipeline::fingerprint(plan);
    const std::string_view name = plan.name();
    std::memcpy(&own[name_begin], name.data(), std::min(name.size(), name_bytes));
    own[microbatches] = static_cast<std::uint64_t>(plan.microbatches);
    own[stages] = static_cast<std::uint64_t>(plan.stages());
    own[does_not_fit] = fits ? 0 : 1;
    own[reach_of_tags] = reach;
  }

  std::vector<std::uint64_t>& numbers() noexcept { return numbers_; }

  /// After the sums: returns the error text; empty if all ranks have equal schedules that fit.
  std::string error_text() const {
    for (std::size_t rank = 1; rank < ranks(); ++rank) {
      if (of(rank, print) == of(0, print)) continue;
      const bool same_sizes = of(rank, microbatches) == of(0, microbatches) && of(rank, stages) == of(0, stages);
      return hocket::detail::concat(
          {"all ranks must pass the same schedule, but passed different schedules: rank 0 has ", describe(0), ", rank ",
           rank, " has ", describe(rank), same_sizes ? ", in another order" : ""});
    }
    for (std::size_t rank = 0; rank < ranks(); ++rank) {
      if (of(rank, does_not_fit) == 0) continue;
      return hocket::detail::concat(
          {"rank ", rank, " has stages that do not fit the schedule; see the error of that rank"});
    }
    return "";
  }

  /// After the sums: returns the number of tags from the oldest one that any rank still has to the next new one.
  std::uint64_t reach() const {
    std::uint64_t longest = 0;
    for (std::size_t rank = 0; rank < ranks(); ++rank) longest = std::max(longest, of(rank, reach_of_tags));
    return longest;
  }

 private:
  static constexpr std::size_t name_words = 4;
  static constexpr std::size_t name_bytes = name_words * sizeof(std::uint64_t);
  enum entry : std::size_t {
    print,
    microbatches,
    stages,
    does_not_fit,
    reach_of_tags,
    name_begin,
    per_rank = name_begin + name_words
  };

  std::size_t ranks() const noexcept { return numbers_.size() / per_rank; }
  std::uint64_t of(std::size_t rank, entry what) const { return numbers_[per_rank * rank + what]; }
  std::string describe(std::size_t rank) const {
    char name[name_bytes + 1] = {};  // long names are truncated
    std::memcpy(name, &numbers_[per_rank * rank + name_begin], name_bytes);
    return hocket::detail::concat({*name != '\0' ? std::string(name) : "one", " of ", of(rank, microbatches),
                                   " microbatches and ", of(rank, stages), " stages"});
  }

  std::vector<std::uint64_t> numbers_;
};

/// Second round: the input and output of each stage, by stage and, if the schedule has two directions, by copy.
class form_round {
 public:
  form_round() = default;
  explicit form_round(const plan::pipeline::placement& where)
      : copies_(where.has_two_directions() ? 2 : 1),
        numbers_(per_stage * copies_ * static_cast<std::size_t>(where.stages()), 0) {}

  /// Writes the entries of `stage`, of which `rank` has at least one copy.
  void describe_own(const plan::pipeline::placement& where, int rank, int stage, const tensor_form& input,
                    const tensor_form& output) {
    for (std::size_t copy = 0; copy < copies_; ++copy) {
      if (holder(where, stage, copy) != rank) continue;
      write(place(stage, copy), input);
      write(place(stage, copy) + per_form, output);
    }
  }

  std::vector<std::uint64_t>& numbers() noexcept { return numbers_; }

  /// After the sums: returns the error text; empty if the output of each stage fits the input of the next.
  std::string error_text(const plan::pipeline::placement& where) const {
    for (int stage = 0; stage < where.stages() && copies_ == 2; ++stage) {
      const std::string wrong = compare_copies(where, stage);
      if (!wrong.empty()) return wrong;
    }
    for (int stage = 0; stage < where.stages(); ++stage) {
      for (const bool takes : {true, false}) {
        const tensor_form form = takes ? input(stage) : output(stage);
        if (form.element_bytes == 0 || form.count <= most_bytes / form.element_bytes) continue;
        return hocket::detail::concat({named(where, stage, 0), takes ? " takes " : " gives ", form.count,
                                       " elements per microbatch, more than any memory holds: check that ",
                                       takes ? "input_size()" : "output_size()", " does not return a negative number"});
      }
    }
    const int last = where.stages() - 1;
    if (input(0).count != 0) return "the first stage fetches its microbatches itself: its input_size() must be 0";
    if (output(last).count != 0) return "the last stage computes the loss itself: its output_size() must be 0";
    for (int stage = 0; stage < last; ++stage) {
      if (fit(output(stage), input(stage + 1))) continue;
      return hocket::detail::concat({named(where, stage, 0), " gives ", describe(output(stage)), " per microbatch, ",
                                     named(where, stage + 1, 0), " takes ", describe(input(stage + 1)),
                                     hint(output(stage), input(stage + 1))});
    }
    return "";
  }

  /// Returns, for each boundary, the bytes that cross it per microbatch.
  std::vector<std::size_t> boundary_bytes() const {
    std::vector<std::size_t> bytes;
    const int stages = static_cast<int>(numbers_.size() / per_stage / copies_);
    for (int stage = 0; stage + 1 < stages; ++stage) bytes.push_back(output(stage).bytes());
    return bytes;
  }

 private:
  static constexpr std::size_t per_form = 3;
  static constexpr std::size_t per_stage = 2 * per_form;
  static constexpr std::size_t most_bytes = std::size_t{1} << 42;  // sums of these do not wrap around either

  static int holder(const plan::pipeline::placement& where, int stage, std::size_t copy) {
    return where.rank_of(stage, copy == 0 ? 0 : where.turn());
  }
  std::size_t place(int stage, std::size_t copy) const {
    return per_stage * (copies_ * static_cast<std::size_t>(stage) + copy);
  }
  void write(std::size_t at, const tensor_form& form) {
    numbers_[at] = form.count;
    numbers_[at + 1] = form.element_bytes;
    numbers_[at + 2] = form.element_type;
  }
  tensor_form read(std::size_t at) const {
    return {static_cast<std::size_t>(numbers_[at]), static_cast<std::size_t>(numbers_[at + 1]),
            static_cast<std::uint32_t>(numbers_[at + 2])};
  }
  tensor_form input(int stage, std::size_t copy = 0) const { return read(place(stage, copy)); }
  tensor_form output(int stage, std::size_t copy = 0) const { return read(place(stage, copy) + per_form); }

  std::string compare_copies(const plan::pipeline::placement& where, int stage) const {
    const auto differ = [&](const char* does, const tensor_form& one, const tensor_form& other) {
      return hocket::detail::concat({"the two copies of a stage must be alike: ", named(where, stage, 0), does,
                                     describe(one), " per microbatch, ", named(where, stage, 1), does, describe(other),
                                     hint(one, other)});
    };
    if (!fit(input(stage, 0), input(stage, 1))) return differ(" takes ", input(stage, 0), input(stage, 1));
    if (!fit(output(stage, 0), output(stage, 1))) return differ(" gives ", output(stage, 0), output(stage, 1));
    return "";
  }

  /// Returns whether the forms are equal. If both have no elements, the type does not matter.
  static bool fit(const tensor_form& one, const tensor_form& other) {
    return one == other || (one.count == 0 && other.count == 0);
  }

  static std::string named(const plan::pipeline::placement& where, int stage, std::size_t copy) {
    return hocket::detail::concat({"stage ", stage, " on rank ", holder(where, stage, copy)});
  }
  static std::string describe(const tensor_form& form) {
    return hocket::detail::concat({form.bytes(), " bytes (", form.count, " elements of ", form.element_bytes, ")"});
  }
  static const char* hint(const tensor_form& one, const tensor_form& other) {
    const bool look_alike = one.count == other.count && one.element_bytes == other.element_bytes;
    return look_alike ? ", of another element type" : "";
  }

  std::size_t copies_ = 1;
  std::vector<std::uint64_t> numbers_;
};

}  // namespace pipeline::detail
HOCKET_END_NAMESPACE
