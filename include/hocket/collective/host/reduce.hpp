// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls that combine elements: all_reduce and reduce_scatter, the latter also with blocks of given lengths.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/explain_arguments.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Op, class T>
HOCKET_VECTORIZE void prepare_all(const Op& op, typename reduction<Op, T>::partial* to, const T* from,
                                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = reduction<Op, T>::prepare(op, from[i]);
}

template <class Op, class T>
HOCKET_VECTORIZE void finish_all(const Op& op, T* to, const typename reduction<Op, T>::partial* from, int ranks,
                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = reduction<Op, T>::finish(op, from[i], ranks);
}

/// The weakest order in which contributions may be combined.
template <class Op, class T>
constexpr plan::combination_order weakest_order() noexcept {
  if (is_in_fixed_tree<Op>) return plan::combination_order::fixed_tree;
  return is_commutative_v<Op, T> ? plan::combination_order::any_order : plan::combination_order::rank_order;
}

/// What reductions have in common; `Kind` is all_reduce or reduce_scatter. `op` is one that reductions run: see
/// `effective_operation`. `Blocks`: see detail/blocks.hpp.
template <plan::collective_kind Kind, class Op, class T, class Blocks = equal_blocks>
struct reduction_spec {
  static constexpr plan::collective_kind collective = Kind;
  static constexpr const char* name = Blocks::name_of(Kind);
  static constexpr std::uint32_t type_signature = mix(Blocks::signature_of(Kind), detail::type_signature<T, Op>());

  template <class State>
  class operation_state;
  /// For people, where `More` is said of the call, too.
  template <class... More>
  static constexpr const char* types() noexcept {
    return types_name<T, Op, More...>();
  }

  std::span<const T> in;
  std::span<T> out;
  Op op;
  [[no_unique_address]] Blocks blocks{};

  template <class State>
  outcome check(const State& state) const {
    if constexpr (Blocks::are_given) {
      outcome wrong = blocks.check(state, in.size(), out.size());
      return wrong.failed() ? std::move(wrong) : check_overlap(in, out, in_place_shift(state));
    }
    const std::size_t count =
        Kind == plan::collective_kind::reduce_scatter ? static_cast<std::size_t>(state.size()) : 1;
    if (in.size() == out.size() * count) return check_overlap(in, out, in_place_shift(state));
    return make_failure(errc::invalid_argument,
                        "in has " + std::to_string(in.size()) + " elements and out " + std::to_string(out.size()) +
                            (count == 1 ? "; they must be equal" : "; in must have as many as out for each rank"));
  }

  /// Where `out` begins within `in`, if they are one buffer.
  template <class State>
  std::ptrdiff_t in_place_shift(const State& state) const {
    if constexpr (Blocks::are_given) return blocks.begin_of(state.rank());
    return Kind == plan::collective_kind::reduce_scatter ? static_cast<std::ptrdiff_t>(out.size()) * state.rank() : 0;
  }

  template <class State>
  bool works_in_place(const State& state) const {
    return reduction<Op, T>::prepares || (in.data() != nullptr && in.data() + in_place_shift(state) == out.data());
  }

  template <class State>
  call_request asked(const State& state) const {
    call_request request{.what = {Kind, 0},
                         .block_elements = out.size(),
                         .element_size = kernel::element_kernel_of<Op, T>.size,
                         .order = weakest_order<Op, T>(),
                         .in_place = works_in_place(state),
                         .type_signature = type_signature,
                         .types = types()};
    if constexpr (Blocks::are_given) blocks.describe(request);
    return request;
  }
};

/// A reduction that is under way. Where contributions must be prepared, it works in place in a buffer of its own; they are
/// prepared, and results finished, a slice at a time, so that a call that ends does so soon.
template <plan::collective_kind Kind, class Op, class T, class Blocks>
template <class State>
class reduction_spec<Kind, Op, T, Blocks>::operation_state final : public operation {
  using partial = typename reduction<Op, T>::partial;
  static constexpr bool prepares = reduction<Op, T>::prepares;

 public:
  operation_state(State& state, const reduction_spec& spec, const planned_call& call, step_observer observer)
      : state_(state), places_(state, spec.blocks, call), op_(spec.op), in_(spec.in), out_(spec.out),
        buffer_(prepares ? state.borrow() : growing_buffer()), run_(state, bind(call, observer), call) {}

  ~operation_state() override {
    if constexpr (prepares) give_back(state_, buffer_);
  }

  machine_status advance() override {
    if constexpr (prepares) {
      if (prepared_ < in_.size()) prepare_some();
      if (prepared_ < in_.size()) return machine_status::progressed;
      if (finished_ == 0) {
        if (const machine_status status = run_.advance(); status != machine_status::done) return status;
      }
      finish_some();
      return finished_ < out_.size() ? machine_status::progressed : machine_status::done;
    } else {
      return run_.advance();
    }
  }
  const failure& reported() const override { return run_.cause(); }
  void locate(error_context& context) override { run_.locate(context); }

 private:
  static constexpr std::size_t slice = std::max<std::size_t>((std::size_t{128} << 10U) / sizeof(partial), 1);

  void prepare_some() {
    const std::size_t count = std::min(slice, in_.size() - prepared_);
    prepare_all<Op, T>(op_, contributions_ + prepared_, in_.data() + prepared_, count);
    prepared_ += count;
  }
  void finish_some() {
    const std::size_t count = std::min(slice, out_.size() - finished_);
    finish_all<Op, T>(op_, out_.data() + finished_, result_ + finished_, state_.size(), count);
    finished_ += count;
  }

  binding bind(const planned_call& call, step_observer observer) {
    binding bound{call.plan,
                  places_.layout(call),
                  &kernel::element_kernel_of<Op, T>,
                  &op_,
                  nullptr,
                  nullptr,
                  call.signature,
                  observer,
                  call.checksummed,
                  nullptr};
    if constexpr (prepares) {
      contributions_ = reinterpret_cast<partial*>(buffer_.get(in_.size() * sizeof(partial)));
      result_ = contributions_ + origin_of(Kind, plan::region::out, bound.layout, state_.rank());
      bound.in = reinterpret_cast<const std::byte*>(contributions_);
      bound.out = reinterpret_cast<std::byte*>(result_);
    } else {
      bound.in = reinterpret_cast<const std::byte*>(in_.data());
      bound.out = reinterpret_cast<std::byte*>(out_.data());
    }
    return bound;
  }

  State& state_;
  [[no_unique_address]] const typename Blocks::template places<State> places_;
  const Op op_;
  const std::span<const T> in_;
  const std::span<T> out_;
  growing_buffer buffer_;
  partial* contributions_ = nullptr;
  partial* result_ = nullptr;
  std::size_t prepared_ = 0;  ///< contributions
  std::size_t finished_ = 0;  ///< results
  plan_run<State> run_;
};

/// Whether the compiler may change what floating-point expressions give.
#ifdef __FAST_MATH__
inline constexpr bool fast_math = true;
#else
inline constexpr bool fast_math = false;
#endif

/// The caller's operation, or one with another type on the wire.
template <class Op, class T, class Options>
auto travelling_operation(const Op& op, const Options& options) {
  if constexpr (Options::template has<kind::wire>) {
    using wire_type = typename decltype(options.template get<kind::wire>(0))::type;
    constexpr bool arrives = Options::template is_hint<kind::wire> || !loses_values<wire_type, T>;
    static_assert(
        arrives,
        "wire<T>: fractions, or large integers, would be lost in this type: let floating elements travel as a "
        "smaller floating type, such as bfloat16, and integers as they are");
    if constexpr (Options::template is_hint<kind::wire> && !can_travel_as<Op, wire_type, T>) {
      return op;
    } else {
      return wired<Op, wire_type>{op};
    }
  } else {
    return op;
  }
}

/// What the caller requires of the bits of the result.
template <class Options>
using exactness_of = typename decltype(std::declval<const Options&>().template get<kind::exactness>(
    exactness_property<same_on_all_ranks_t>{}))::level;

/// The operation that runs for what the caller asked: its own, one with another type on the wire, an exact one, or one that
/// is combined in the fixed tree.
template <class Op, class T, class Options>
auto effective_operation(const Op& op, const Options& options) {
  using exactness = exactness_of<Options>;
  if constexpr (std::is_same_v<exactness, fixed_tree_t>) {
    static_assert(
        !fast_math || !is_floating<T>,
        "require(fixed_tree): this source is compiled with -ffast-math, which lets the compiler change results: "
        "compile it without");
    auto travels = travelling_operation<Op, T>(op, options);
    if constexpr (is_exact_v<decltype(travels), T>) {
      return travels;  // no order changes a bit
    } else {
      return in_fixed_tree<decltype(travels)>{travels};
    }
  } else if constexpr (std::is_same_v<exactness, rank_count_invariant_t>) {
    using exact = typename rank_count_invariant_operation<Op, T>::type;
    static_assert(!std::is_void_v<exact>,
                  "require(rank_count_invariant): no way to combine this type with this operation gives the same bits "
                  "for any number of ranks; sums of float and double, and operations that are exact, do");
    static_assert(!fast_math || !is_floating<T>,
                  "require(rank_count_invariant): this source is compiled with -ffast-math, which lets the compiler "
                  "change results: compile it without");
    static_assert(!Options::template has<kind::wire> || Options::template is_hint<kind::wire>,
                  "require(rank_count_invariant) and wire<T> exclude each other: values must travel unrounded");
    if constexpr (std::is_same_v<exact, Op>) {
      return op;
    } else if constexpr (std::is_same_v<exact, canonical<Op>>) {
      return canonical<Op>{op};
    } else {
      return exact{};
    }
  } else {
    return travelling_operation<Op, T>(op, options);
  }
}

template <plan::collective_kind Kind, class T, class Op, class Options, class Blocks = equal_blocks>
auto make_reduction_spec(std::span<const T> in, std::span<T> out, const Op& op, const Options& options,
                         const Blocks& blocks = {}) {
  static_assert(!explain_device_options_of_a_host<Options>() ||
                    Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::wire, kind::observer,
                                           kind::exactness, kind::integrity>,
                "with(...): a reduction can't use one of these properties; wrap it in hint(...) to have it ignored");
  auto effective = effective_operation<Op, T>(op, options);
  if constexpr (Options::template has<kind::algorithm> && !Options::template is_hint<kind::algorithm>) {
    using algorithm_type = decltype(options.template get<kind::algorithm>(0));
    constexpr plan::combination_order needed = weakest_order<decltype(effective), T>();
    constexpr bool fits = order_of<Kind, algorithm_type>() <= needed;
    static_assert(fits || needed != plan::combination_order::fixed_tree,
                  "require(fixed_tree): this algorithm combines in another order than the fixed tree: all_reduce has "
                  "recursive_doubling, halving_doubling, one_shot, two_shot and push, reduce_scatter recursive_halving "
                  "and direct, or leave the choice to the call");
    static_assert(
        fits || needed == plan::combination_order::fixed_tree,
        "with(...): this algorithm combines operands in another order than that of the ranks, and the operation "
        "is not known to be commutative: give it `static constexpr bool commutative = true`, or choose an "
        "algorithm that keeps rank order (all_reduce: recursive_doubling, halving_doubling, double_tree, "
        "one_shot, two_shot, push; reduce_scatter: pairwise, recursive_halving, direct)");
  }
  return reduction_spec<Kind, decltype(effective), T, Blocks>{in, out, std::move(effective), blocks};
}

}  // namespace detail
HOCKET_END_NAMESPACE
