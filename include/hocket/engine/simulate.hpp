// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Predicts how long a plan takes on up to 100 000 ranks: the engine's own state machines run it, without data.
///
/// Unlike `plan::price`, which only reads a plan, this runs what ranks would run: a difference between the two means a
/// defect in either. No element is touched, so the size of the vector has no cost.
#pragma once

#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/machine.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/operation_event.hpp>
#include <hocket/transport/sim/domain.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

/// Result of `simulate`.
struct result {
  double seconds = 0;          ///< until the last rank completed
  std::uint64_t messages = 0;  ///< sent by all ranks
  std::uint64_t bytes = 0;     ///< in these messages

  friend constexpr bool operator==(const result&, const result&) = default;
};

namespace detail {

/// Memory that is never accessed: only addresses are computed.
struct no_memory {
  static constexpr std::uintptr_t somewhere = std::uintptr_t{1} << 40;
  static std::byte* address() noexcept { return reinterpret_cast<std::byte*>(somewhere); }
  static std::byte* get(std::size_t) noexcept { return address(); }
};

/// Simulated messages are never lost, so they need no numbers.
struct no_numbers {
  std::uint8_t number = 0;
  std::uint8_t& sent(int, transport::message_id) noexcept { return number = 0; }
  std::uint8_t& received(int, transport::message_id) noexcept { return number = 0; }
};

/// No caller reads the counts of a simulation of one operation.
struct no_counts {
  static void note_sent(call_kind, int, std::size_t) noexcept {}
  static void note_received(int, std::size_t) noexcept {}
  static void note_read(call_kind, int, std::size_t) noexcept {}
};

/// The part of a communicator that the engine needs for one operation that sends messages without data.
class bare_state {
  using push_line = hocket::detail::push_line;
  using signal_line = hocket::detail::signal_line;

 public:
  using endpoints_type = sim::endpoint_group;

  bare_state(const std::shared_ptr<network>& through, const transport::open_parameters& how)
      : endpoints_(through, how) {}

  int rank() const noexcept { return endpoints_.rank(); }
  int size() const noexcept { return endpoints_.size(); }
  endpoints_type& endpoints() noexcept { return endpoints_; }

  static constexpr bool has_turn(std::uint32_t) noexcept { return true; }
  static constexpr bool has_credit(std::uint32_t) noexcept { return true; }
  static constexpr void complete(std::uint32_t) noexcept {}
  static constexpr no_memory scratch(unsigned) noexcept { return {}; }
  no_numbers& numbers() noexcept { return numbers_; }
  static no_counts counts() noexcept { return {}; }

  // For plans that use peer pointers, which `simulate` rejects.
  static constexpr hocket::detail::window_layout layout() noexcept { return {}; }
  static std::byte* window(int) noexcept { return nullptr; }
  static void note_completed(int, std::uint32_t) noexcept {}
  static push_line& push_line_at(int, unsigned) noexcept { return line<push_line>(); }
  static push_line& push_line_from(int, unsigned) noexcept { return line<push_line>(); }
  static signal_line& signal_line_at(int, unsigned) noexcept { return line<signal_line>(); }
  static signal_line& signal_line_from(int, unsigned) noexcept { return line<signal_line>(); }

 private:
  template <class Line>
  static Line& line() noexcept {
    return *reinterpret_cast<Line*>(no_memory::address());
  }

  endpoints_type endpoints_;
  no_numbers numbers_;
};

/// One rank with its only operation.
class bare_rank {
 public:
  bare_rank(const std::shared_ptr<network>& through, const transport::open_parameters& how,
            const hocket::detail::binding& bound)
      : state_(through, how), machine_(state_, 1, bound) {
    state_.endpoints().attach(
        this, [](void* self, const transport::operation_event&) { return static_cast<bare_rank*>(self)->poll(); });
    poll();
  }
  bare_rank(const bare_rank&) = delete;
  bare_rank& operator=(const bare_rank&) = delete;

  bool failed() const noexcept { return status_ == hocket::detail::machine_status::failed; }
  const failure& cause() const noexcept { return machine_.cause(); }

 private:
  bool over() const noexcept { return status_ == hocket::detail::machine_status::done || failed(); }

  /// Returns whether the operation is incomplete.
  bool poll() {
    if (!over()) status_ = machine_.advance();
    return !over();
  }

  bare_state state_;
  hocket::detail::machine<bare_state> machine_;
  hocket::detail::machine_status status_ = hocket::detail::machine_status::blocked;
};

inline constexpr kernel::element_kernel kernel_without_data(std::size_t element_size) noexcept {
  constexpr auto no_copy = [](void*, const void*, std::size_t) {};
  return {element_size, [](const void*, void*, const void*, const void*, std::size_t) {},
          [](const void*, void*, const void* const*, std::size_t, std::size_t) {}, no_copy, no_copy};
}

}  // namespace detail

/// Runs `plan` over `ranks` simulated ranks, for blocks of `block_elements` elements of `element_size` bytes. Takes 0.1
/// to 1 us per message, more if the ranks' memory does not fit the caches, and about 1 KB per rank. A ring has
/// 2 p (p-1) messages, logarithmic algorithms about p log2 p.
///
/// Raises `invalid_argument` for a plan that uses peer pointers, which has a price (plan/price.hpp) but no simulation;
/// and `timeout` for a plan that does not end, with the ranks that wait.
inline result simulate(const plan::any_algorithm& plan, int ranks, std::size_t block_elements, std::size_t element_size,
                       const conditions& how) {
  if (ranks < 1)
    raise(errc::invalid_argument, hocket::detail::concat({"simulate: ranks must be at least 1, got ", ranks}));
  if (plan.shape(ranks).peer_pointers && ranks > 1) {
    raise(errc::invalid_argument, std::string("simulate: plan ") + plan.name() +
                                      " reads peers' memory; simulated ranks have messages only. "
                                      "plan::price computes its cost");
  }
  const kernel::element_kernel element_kernel = detail::kernel_without_data(element_size);
  const hocket::detail::binding bound{
      plan,
      {block_elements, static_cast<std::uint32_t>(plan.collective().blocks(ranks)), plan.shape(ranks).chunks_per_block},
      &element_kernel,
      nullptr,
      detail::no_memory::address(),
      detail::no_memory::address(),
      0,
      {}};
  auto members = std::vector<int>(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  transport::open_parameters opening;
  opening.members = std::make_shared<const std::vector<int>>(std::move(members));
  const auto through = std::make_shared<network>(ranks, how);
  std::deque<detail::bare_rank> all;
  for (int rank = 0; rank < ranks; ++rank) {
    opening.rank = rank;
    all.emplace_back(through, opening, bound);
  }
  through->run();
  for (const auto& each : all) {
    if (each.failed()) raise(each.cause());
  }
  if (failure cause = through->stuck()) raise(std::move(cause));
  return {through->now(), through->messages(), through->bytes()};
}

inline result simulate(const plan::any_algorithm& plan, int ranks, std::size_t block_elements, std::size_t element_size,
                       const plan::cost_model& model) {
  return simulate(plan, ranks, block_elements, element_size, conditions{.model = model});
}

}  // namespace sim
HOCKET_END_NAMESPACE
