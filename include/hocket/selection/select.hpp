// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The choice of an algorithm when the caller names none: the cheapest by a small cost model.
///
/// The choice is a pure function of values that are equal on all ranks: collective, bytes, ranks, the order in which
/// operands may be combined, and what the communicator's members agreed on at its creation. `explain` shows the table.
#pragma once

#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/plan/ceiling_log2.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>
#include <hocket/transport/link_costs.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace selection {

/// The values that a choice depends on. `bytes` is the length of one block (see `plan::collective`), or of the longest
/// if they differ, because the rank that sends or combines the longest block finishes last.
struct query {
  plan::collective what;  ///< the collective
  std::size_t bytes = 0;  ///< see above
  int ranks = 1;
  plan::combination_order order = plan::combination_order::any_order;  ///< the weakest that is allowed
  bool peer_pointers = false;                                          ///< all members reach each other's windows
  std::size_t staging_bytes = 0;  ///< per region and operation; 0: peers read the callers' own buffers
  transport::link_costs costs;    ///< of the transport
  std::size_t total_bytes = 0;    ///< of all blocks, if they differ
  bool lengths_are_known = true;  ///< to all ranks; otherwise `bytes` is a guess
  bool equal_lengths = true;      ///< of all blocks
};

/// Assumed length of a block if each rank knows only some of the lengths.
inline constexpr std::size_t guessed_block_bytes = 16 * 1024;

/// Returns the product, or the largest number on overflow, so that a size that is too large does not look small.
constexpr std::size_t saturated_product(std::size_t a, std::size_t b) noexcept {
  std::size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::size_t>::max() : product;
}

/// One algorithm's place in the table.
struct candidate {
  const char* name = nullptr;                       ///< of the algorithm
  double seconds = 0;                               ///< by the model
  const char* unusable_reason = nullptr;            ///< why it can't be used; null if it can
  plan::any_algorithm (*make)(int root) = nullptr;  ///< makes the plan
};

namespace detail {

/// Closed forms of the costs of the plans for one query.
class model {
 public:
  explicit model(const query& asked)
      : q_(asked), p_(asked.ranks), n_(static_cast<double>(asked.bytes)),
        mean_(asked.total_bytes == 0 ? n_ : static_cast<double>(asked.total_bytes) / p_),
        steps_(plan::ceiling_log2(asked.ranks)) {}

  double ring_all_reduce() const {
    return 2 * (p_ - 1) * message(n_ / p_) + (p_ - 1) * (n_ / p_) * q_.costs.reduce_per_byte + fresh(share());
  }
  double recursive_doubling() const {
    return steps_ * (message(n_) + n_ * q_.costs.reduce_per_byte) + fresh((steps_ - 1) * n_);
  }
  double halving_doubling() const {
    double seconds = std::has_single_bit(static_cast<unsigned>(q_.ranks)) ? 0 : 2 * message(n_);
    double piece = n_;
    for (int step = 0; step < steps_; ++step) seconds += 2 * message(piece /= 2);
    return seconds + share() * q_.costs.reduce_per_byte + fresh(share());
  }
  double double_tree(double chunks_per_half) const {
    const double piece = n_ / (2 * chunks_per_half);
    return (2 * steps_ + 4 * chunks_per_half) * message(piece) + n_ * q_.costs.reduce_per_byte;
  }
  double one_shot() const { return reads() + (p_ - 1) * n_ * read_and_reduced() + staging((p_ - 1) * n_); }
  double two_shot() const {
    return reads() + flags() + q_.costs.load_latency + share() * (read_and_reduced() + q_.costs.load_per_byte) +
           fresh(share()) + staging(share());
  }
  /// Payload and flag in one line, which costs no more than the shortest message. Never more than another algorithm,
  /// because the direct path of all_reduce does not ask the table: see collective/host/push.hpp.
  double push() const { return std::min(flags(), message(0)); }

  /// Blocks of n bytes: every rank receives p - 1 of them. Around a ring, the longest determines the time of each step.
  /// A rank that reads them one after the other takes as long as for p - 1 blocks of mean length.
  double ring_blocks() const { return (p_ - 1) * message(n_); }
  double direct_blocks() const { return direct_blocks(mean_); }
  double ring_reduce_scatter() const { return ring_blocks() + reduced_blocks(); }
  double pairwise_reduce_scatter() const { return ring_reduce_scatter() - forwarding_waits(); }
  double pairwise_all_gather() const { return ring_blocks() - forwarding_waits() + repeated_reads(); }
  double recursive_halving_reduce_scatter() const {
    const bool folds = !std::has_single_bit(static_cast<unsigned>(q_.ranks));
    return ring_reduce_scatter() + (folds ? p_ * (message(n_) + n_ * q_.costs.reduce_per_byte) + message(n_) : 0);
  }
  double direct_reduce_scatter() const { return direct_blocks(n_) + reduced_blocks(); }
  double binomial() const { return steps_ * message(n_); }
  double direct_broadcast() const { return reads() + n_ * q_.costs.load_per_byte + staging(n_); }
  double dissemination() const { return steps_ * message(0); }

  /// Collectives with a root: the costs of the rank that ends last.
  double binomial_reduce() const { return steps_ * (message(n_) + n_ * q_.costs.reduce_per_byte); }
  double ring_reduce(double pieces) const {
    const double piece = n_ / pieces;
    return (p_ - 2 + pieces) * (message(piece) + piece * q_.costs.reduce_per_byte);
  }
  double flat() const { return overlapping_messages(mean_); }
  double binomial_blocks() const {
    double seconds = 0;
    for (double blocks = 1; blocks < p_; blocks *= 2) seconds += message(std::min(blocks, p_ - blocks) * n_);
    return seconds;
  }
  double direct_scatter() const {
    const double staged = q_.staging_bytes == 0 ? 0 : p_ * mean_ * q_.costs.load_per_byte + fresh(mean_);
    return reads() + n_ * q_.costs.load_per_byte + staged;
  }

 private:
  double message(double bytes) const {
    if (bytes <= static_cast<double>(q_.costs.eager_bytes)) {
      return q_.costs.message_latency + bytes * q_.costs.message_per_byte;
    }
    // The receiver reads it between two messages that announce it and report its end.
    return q_.costs.message_latency + 2 * flags(2) + q_.costs.load_latency + bytes * q_.costs.load_per_byte;
  }
  double direct_blocks(double bytes) const {
    return reads() + (p_ - 1) * bytes * q_.costs.load_per_byte + staging((p_ - 1) * bytes);
  }
  /// Messages of `bytes` bytes between one rank and each other rank. They are in flight together: the rank waits for the
  /// first, and then is busy with each of the others for a part of its latency, or while it moves the data.
  double overlapping_messages(double bytes) const {
    const bool is_short = bytes <= static_cast<double>(q_.costs.eager_bytes);
    const double moving = bytes * (is_short ? q_.costs.message_per_byte : q_.costs.load_per_byte);
    return message(bytes) + (p_ - 2) * std::max(busy_share * q_.costs.message_latency, moving);
  }
  static constexpr double busy_share = 0.25;  ///< of a message's latency, assumed
  double reduced_blocks() const { return (p_ - 1) * n_ * q_.costs.reduce_per_byte; }
  double read_and_reduced() const { return q_.costs.load_per_byte + q_.costs.reduce_per_byte; }
  /// One round of flags from and to all of `ranks` ranks.
  double flags(double ranks) const { return q_.costs.flag_latency * (1 + 0.25 * (ranks - 1)); }
  double flags() const { return flags(p_); }
  /// Reading peers' memory between two rounds of flags, without the time per byte.
  double reads() const { return 2 * flags() + q_.costs.load_latency; }
  /// What ranks of one host wait around a ring for others to forward blocks, most of all if they share cores. Over a
  /// network, latencies are assumed to be part of each message.
  double forwarding_waits() const {
    return q_.peer_pointers ? (p_ - 2) * std::min(q_.costs.flag_latency, q_.costs.message_latency) : 0;
  }
  /// A rank that sends its block to all others reads it again for each of them. Around a ring, it reads what it has just
  /// received, which is in its cache even if the block is longer than that holds.
  double repeated_reads() const {
    return !q_.peer_pointers || n_ <= q_.costs.fresh_bytes ? 0 : (p_ - 2) * n_ * q_.costs.load_per_byte;
  }
  /// Bytes that a rank gets if each rank combines a part of the vector and the others read it.
  double share() const { return (p_ - 1) / p_ * n_; }
  /// Additional time for reading `bytes` bytes that peers have just written.
  double fresh(double bytes) const {
    return q_.costs.fresh_load_per_byte * std::max(0.0, std::min(bytes, q_.costs.fresh_bytes));
  }
  /// Copying into memory that peers can read. This rank reads `bytes` bytes that peers have just copied there.
  double staging(double bytes) const { return q_.staging_bytes == 0 ? 0 : n_ * q_.costs.load_per_byte + fresh(bytes); }

  const query& q_;
  const double p_;
  const double n_;
  const double mean_;
  const double steps_;
};

}  // namespace detail

/// All algorithms for a query with their prices, in a fixed order.
class table {
 public:
  /// Prices all algorithms for `asked`.
  explicit table(const query& asked) : query_(asked) {
    const detail::model price(asked);
    switch (asked.what.kind) {
      case plan::collective_kind::all_reduce:
        add<plan::push_all_reduce>(price.push());
        add<plan::one_shot>(price.one_shot());
        add<plan::two_shot>(price.two_shot());
        add<plan::recursive_doubling>(price.recursive_doubling());
        add<plan::halving_doubling>(price.halving_doubling());
        add<plan::double_tree>(price.double_tree(16));
        add<plan::ring_all_reduce>(price.ring_all_reduce());
        break;
      case plan::collective_kind::reduce_scatter:
        add<plan::direct_reduce_scatter>(price.direct_reduce_scatter());
        add<plan::ring_reduce_scatter>(price.ring_reduce_scatter());
        add<plan::pairwise_reduce_scatter>(price.pairwise_reduce_scatter());
        add<plan::recursive_halving_reduce_scatter>(price.recursive_halving_reduce_scatter());
        break;
      case plan::collective_kind::all_gather:
        add<plan::direct_all_gather>(price.direct_blocks());
        add<plan::ring_all_gather>(price.ring_blocks());
        add<plan::pairwise_all_gather>(price.pairwise_all_gather());
        break;
      case plan::collective_kind::all_to_all:
        add<plan::direct_all_to_all>(price.direct_blocks());
        add<plan::pairwise_all_to_all>(price.ring_blocks());
        break;
      case plan::collective_kind::broadcast:
        add<plan::direct_broadcast>(price.direct_broadcast());
        add<plan::binomial_broadcast>(price.binomial());
        break;
      case plan::collective_kind::reduce:
        add<plan::direct_reduce>(price.one_shot());
        add<plan::binomial_reduce>(price.binomial_reduce());
        add<plan::ring_reduce>(price.ring_reduce(plan::ring_reduce::chunks_per_block));
        break;
      case plan::collective_kind::gather:
        add<plan::direct_gather>(price.direct_blocks());
        add<plan::flat_gather>(price.flat());
        add<plan::binomial_gather>(price.binomial_blocks());
        break;
      case plan::collective_kind::scatter:
        add<plan::direct_scatter>(price.direct_scatter());
        add<plan::flat_scatter>(price.flat());
        add<plan::binomial_scatter>(price.binomial_blocks());
        break;
      case plan::collective_kind::barrier: add<plan::dissemination_barrier>(price.dissemination()); break;
    }
  }

  const candidate* begin() const noexcept { return rows_.data(); }
  const candidate* end() const noexcept { return rows_.data() + count_; }

  /// Returns the cheapest algorithm that can be used. There always is one, because every collective has a plan that
  /// sends messages and combines in the fixed tree.
  const candidate& best() const noexcept {
    const candidate* chosen = nullptr;
    for (const candidate& each : *this) {
      if (each.unusable_reason == nullptr && (chosen == nullptr || each.seconds < chosen->seconds)) chosen = &each;
    }
    return *chosen;
  }

 private:
  static constexpr std::size_t capacity = 8;

  template <class Plan>
  void add(double seconds) {
    constexpr bool is_push = std::is_same_v<Plan, plan::push_all_reduce>;
    const plan::shape shape = with_root(Plan{}, query_.what.root).shape(query_.ranks);
    rows_[count_++] = {Plan::name(), seconds, unusable_reason(shape, is_push),
                       [](int root) -> plan::any_algorithm { return with_root(Plan{}, root); }};
  }

  template <class Plan>
  static Plan with_root(Plan made, int root) {
    if constexpr (requires { made.root = root; }) made.root = root;
    return made;
  }

  const char* unusable_reason(const plan::shape& shape, bool is_push) const noexcept {
    if (shape.peer_pointers && query_.ranks > 1 && !query_.peer_pointers) return "ranks can't read each other's memory";
    if (shape.order > query_.order) {
      return query_.order == plan::combination_order::fixed_tree ? "combines in another order than the fixed tree"
                                                                 : "operation is not commutative";
    }
    if (shape.equal_blocks && !query_.equal_lengths) return "moves several blocks together, which needs equal lengths";
    if (is_push && query_.bytes > hocket::detail::push_line::capacity) return "longer than a cache line";
    if (shape.peer_pointers && query_.ranks > 1 && query_.staging_bytes != 0 && !query_.lengths_are_known) {
      return "lengths are known only to pairs of ranks, so blocks cannot be staged";
    }
    const std::size_t whole = query_.total_bytes != 0
                                  ? query_.total_bytes
                                  : saturated_product(query_.bytes, static_cast<std::size_t>(query_.ranks));
    const bool segmented = query_.what.blocks(query_.ranks) == 1;
    if (shape.peer_pointers && query_.staging_bytes != 0 && !segmented && whole > query_.staging_bytes) {
      return "longer than the staging memory";
    }
    return nullptr;
  }

  const query query_;
  std::size_t count_ = 0;
  std::array<candidate, capacity> rows_{};
};

}  // namespace selection
HOCKET_END_NAMESPACE
