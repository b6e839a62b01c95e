// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The progress of one step of gradient accumulation: microbatches, ready parameters, buckets in flight, and sums other
/// than gradients. Nothing here depends on the type of a gradient, on options or on the transport, so it is compiled
/// once and not for each accumulator of a program.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/request.hpp>
#include <hocket/gradient/buckets_in_flight.hpp>
#include <hocket/gradient/layout_share.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/totals.hpp>

#include <chrono>
#include <cstddef>
#include <source_location>
#include <span>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Properties of the accumulator that determine the order of work in a step.
struct accumulation_rules {
  bool keeps_whole = false;             ///< microbatches are summed before they are reduced
  bool keeps_pieces = false;            ///< a rank stores only the sum of its pieces
  bool scatters = false;                ///< a reduction yields only a piece of a bucket
  bool scatters_before_adding = false;  ///< replicas are summed only at the last microbatch
  bool has_replicas = false;

  /// True if a reduction yields less than what the rank stores.
  constexpr bool gathers() const noexcept { return scatters && !keeps_pieces; }
};

/// `gradient_accumulator` describes the public functions. The private virtual functions do what depends on types.
class accumulated_step {
 public:
  accumulated_step(parameter_layout layout, const accumulation_rules& rules, int rank, int ranks,
                   const std::source_location& site);
  accumulated_step(accumulated_step&&) = default;
  accumulated_step& operator=(accumulated_step&&) = delete;
  virtual ~accumulated_step() = default;

  const parameter_layout& layout() const noexcept { return layout_; }
  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }
  const element_range& own_range(std::size_t b) const noexcept { return share_.range(b); }

  void begin_microbatch(int index, int microbatches);
  void ready(std::size_t i);
  void progress();
  void end_microbatch(double loss, double count);
  gradient_totals finish();
  gradient_totals finish_counts();
  gradient_totals abandon();
  gradient_totals abandon(int microbatches);
  void wait(std::size_t b);

  const gradient_totals& totals() const noexcept { return totals_; }
  bool abandoned() const noexcept { return totals_.abandoned > 0; }
  bool was_used(std::size_t i) const noexcept { return report_[uses + i] > 0; }
  void check_finished(const char* call) const;
  void use();

 protected:
  const accumulation_rules& rules() const noexcept { return rules_; }
  const std::source_location& site() const noexcept { return site_; }
  /// The part of each bucket that this rank stores, and the part of bucket `b` that a reduction yields.
  const layout_share& share() const noexcept { return share_; }
  const element_range& reduced_range(std::size_t b) const noexcept { return reduced_.range(b); }
  /// Returns the lengths of all ranks' pieces of bucket `b`; valid until the next call.
  std::span<const std::size_t> lengths(std::size_t b) { return reduced_.lengths(layout_, b); }

  /// Fails `call(i)` unless the gradient of parameter `i` may be added to, and records that there is one.
  void record_use(std::size_t i, const char* call) {
    if (i >= layout_.parameters() || !inside_ || done_[i]) [[unlikely]]
      refuse_closed(i, call);
    report_[uses + i] = 1;
  }
  /// Waits until the next gradient of bucket `b` may be computed.
  /// @param has_memory whether the bucket already has memory for a microbatch's gradient
  void wait_for_room(std::size_t b, bool has_memory);

  /// Ends all buckets in flight. Each destructor of a derived class calls it before its memory is freed.
  void end_all() noexcept { in_flight_.clear(); }

  [[noreturn]] HOCKET_DETAIL_RARE void refuse(std::string reason) const;
  [[noreturn]] HOCKET_DETAIL_RARE void refuse_size(std::size_t i, std::size_t given) const;

 private:
  /// Positions in the report that is summed over ranks. From `uses` on, one use count per parameter.
  enum report_entry : std::size_t { losses, counts_of_losses, abandoned_ranks, uses };

  /// Sets the stored sums to zero.
  virtual void clear_sums() = 0;
  /// Allocates the memory in which the gradient of bucket `b` is computed. May wait.
  virtual void allocate_microbatch_gradient(std::size_t b) = 0;
  /// Adds the reduced gradient of a microbatch to the stored sums of the step.
  virtual void add_to_sums(std::size_t b) = 0;
  /// Starts to reduce bucket `b` over the ranks of one copy, or the result of that over replicas.
  virtual request begin_within(std::size_t b) = 0;
  virtual request begin_across(std::size_t b) = 0;
  /// Starts to gather the summed pieces of bucket `b` on all ranks.
  virtual request begin_gather(std::size_t b) = 0;
  virtual void sum_over_ranks(std::span<double> report) = 0;
  virtual void revoke(const std::string& reason) const = 0;
  /// Timeout of the collectives that the functions above start.
  virtual std::chrono::nanoseconds timeout() const = 0;

  [[noreturn]] HOCKET_DETAIL_RARE void refuse_closed(std::size_t i, const char* call) const;
  void check_complete(const char* call) const;

  void begin_step(int microbatches);
  void complete(std::size_t i);
  void launch(std::size_t b);
  request begun(std::size_t b, bool across);
  HOCKET_DETAIL_RARE void revoke_unbegun(std::size_t b, const char* thrown) const;
  void handle_completed(std::size_t b, bool across, bool continues_across);
  void wait_for_one();
  void wait_for_all();
  void gather();

  parameter_layout layout_;
  accumulation_rules rules_;
  int rank_;
  int ranks_;
  std::source_location site_;
  layout_share share_;    ///< what this rank stores
  layout_share reduced_;  ///< what reductions yield

  int next_ = 0;  ///< number of microbatches of this step that have begun
  int of_ = 0;
  bool inside_ = false;
  bool finished_ = false;
  bool used_ = false;  ///< by an optimizer's step
  std::size_t to_launch_ = 0;
  gradient_totals totals_;

  std::vector<std::size_t> missing_;  ///< per bucket: number of parameters that are not ready
  std::vector<bool> is_in_flight_;    ///< per bucket
  std::vector<bool> done_;            ///< per parameter: ready, or the microbatch has ended
  std::vector<double> report_;        ///< see `report_entry`
  buckets_in_flight in_flight_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/accumulated_step.ipp>
#endif
