// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How far a step of gradient accumulation is: microbatches, parameters that are ready, buckets that leave, and what the
/// step adds up to beside gradients. None of it depends on the type of a gradient, on options or on the transport, so it
/// is compiled once, and not for each accumulator that a program has.
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

/// What the order of work in a step depends on.
struct accumulation_rules {
  bool keeps_whole = false;             ///< whether microbatches are added up before they are reduced
  bool keeps_pieces = false;            ///< whether a rank keeps the sum of its pieces alone
  bool scatters = false;                ///< whether a reduction leaves a piece of a bucket
  bool scatters_before_adding = false;  ///< whether replicas are added up at the last microbatch alone
  bool has_replicas = false;

  /// Whether a reduction leaves less than what is kept.
  constexpr bool gathers() const noexcept { return scatters && !keeps_pieces; }
};

/// The public functions are those of `gradient_accumulator`, where they are described. The private ones that are virtual
/// are what depends on types.
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
  /// What is kept of all buckets, and what a reduction leaves of bucket `b`.
  const layout_share& share() const noexcept { return share_; }
  const element_range& reduced_range(std::size_t b) const noexcept { return reduced_.range(b); }
  /// The lengths of all ranks' pieces of bucket `b`, until the next call.
  std::span<const std::size_t> lengths(std::size_t b) { return reduced_.lengths(layout_, b); }

  /// Refuses `call(i)` unless the gradient of parameter `i` may be added to, and notes that there is one.
  void open(std::size_t i, const char* call) {
    if (i >= layout_.parameters() || !inside_ || done_[i]) [[unlikely]]
      refuse_closed(i, call);
    report_[uses + i] = 1;
  }
  /// Waits until the next gradient of bucket `b` may be formed.
  /// @param is_formed whether it has memory already
  void make_room(std::size_t b, bool is_formed);

  /// Ends what is on its way. Each destructor of a derived class calls it before its memory ends.
  void end_all() noexcept { in_flight_.clear(); }

  [[noreturn]] HOCKET_DETAIL_RARE void refuse(std::string reason) const;
  [[noreturn]] HOCKET_DETAIL_RARE void refuse_size(std::size_t i, std::size_t given) const;

 private:
  /// Where things are in the report that is summed over ranks: behind `uses`, of each parameter how often it was used.
  enum report_entry : std::size_t { losses, counts_of_losses, abandonments, uses };

  /// Sets what is kept to zero.
  virtual void clear_kept() = 0;
  /// Gives bucket `b` memory where its gradient is formed. May wait.
  virtual void form(std::size_t b) = 0;
  /// Adds what came of a microbatch to what is kept of the step.
  virtual void fold(std::size_t b) = 0;
  /// Begins to reduce bucket `b` over the ranks of one copy, or what is left of it over replicas.
  virtual request begin_within(std::size_t b) = 0;
  virtual request begin_across(std::size_t b) = 0;
  /// Begins to give all ranks the pieces of bucket `b` that each has summed.
  virtual request begin_gather(std::size_t b) = 0;
  virtual void sum_over_ranks(std::span<double> report) = 0;
  virtual void revoke(const std::string& reason) const = 0;
  /// That of the calls that were begun.
  virtual std::chrono::nanoseconds timeout() const = 0;

  [[noreturn]] HOCKET_DETAIL_RARE void refuse_closed(std::size_t i, const char* call) const;
  void check_complete(const char* call) const;

  void begin_step(int microbatches);
  void complete(std::size_t i);
  void launch(std::size_t b);
  request begun(std::size_t b, bool across);
  HOCKET_DETAIL_RARE void revoke_unbegun(std::size_t b, const char* thrown) const;
  void landed(std::size_t b, bool across, bool goes_on);
  void wait_for_one();
  void wait_for_all();
  void gather();

  parameter_layout layout_;
  accumulation_rules rules_;
  int rank_;
  int ranks_;
  std::source_location site_;
  layout_share share_;    ///< what is kept
  layout_share reduced_;  ///< what reductions leave

  int next_ = 0;  ///< how many microbatches of this step have begun
  int of_ = 0;
  bool inside_ = false;
  bool finished_ = false;
  bool used_ = false;  ///< by an optimizer
  std::size_t to_launch_ = 0;
  gradient_totals totals_;

  std::vector<std::size_t> missing_;  ///< of each bucket: parameters that are not ready
  std::vector<bool> is_in_flight_;    ///< whether it is on its way
  std::vector<bool> done_;            ///< of each parameter: ready, or over with the microbatch
  std::vector<double> report_;        ///< see `report_entry`
  buckets_in_flight in_flight_;
};

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/accumulated_step.ipp>
#endif
