// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls that move elements and combine nothing: all_gather and all_to_all, also with blocks of given lengths,
/// broadcast and barrier.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/explain_arguments.hpp>
#include <hocket/core/config.hpp>
#include <hocket/kernel/host/element_kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// What moving collectives have in common. `in` is empty where the goal has none. `Blocks`: see detail/blocks.hpp.
template <plan::collective_kind Kind, class T, class Blocks = equal_blocks>
struct move_spec {
  static constexpr plan::collective_kind collective = Kind;
  static constexpr const char* name = Blocks::name_of(Kind);
  static constexpr std::uint32_t type_signature = mix(Blocks::signature_of(Kind), detail::type_signature<T>());

  template <class State>
  class operation_state;
  /// For people, where `More` is said of the call, too.
  template <class... More>
  static constexpr const char* types() noexcept {
    return types_name<T, More...>();
  }

  std::span<const T> in;
  std::span<T> out;
  int root = 0;
  [[no_unique_address]] Blocks blocks{};

  template <class State>
  outcome check(const State& state) const {
    const auto ranks = static_cast<std::size_t>(state.size());
    if constexpr (Blocks::are_given) {
      outcome wrong = blocks.check(state, in.size(), out.size());
      if (wrong.failed()) return wrong;
      if constexpr (Kind == plan::collective_kind::all_gather) return check_overlap(in, out, in_place_shift(state));
      if (!overlap(in, out)) return {};
      return make_failure(errc::invalid_argument,
                          "in and out overlap; blocks of given lengths have other places in the one than in the other, "
                          "so keep them apart");
    } else if constexpr (Kind == plan::collective_kind::all_gather) {
      if (out.size() == in.size() * ranks) return check_overlap(in, out, in_place_shift(state));
      return sizes("out must have as many as in for each rank");
    } else if constexpr (Kind == plan::collective_kind::all_to_all) {
      if (in.size() == out.size() && out.size() % ranks == 0) return check_overlap(in, out, 0);
      return sizes("they must be equal, and a multiple of the number of ranks");
    } else {
      if (root >= 0 && root < state.size()) return {};
      return make_failure(errc::invalid_argument, "root is " + std::to_string(root) + "; it must be one of 0 to " +
                                                      std::to_string(state.size() - 1));
    }
  }

  /// Where `out` begins relative to `in`, if they are one buffer.
  template <class State>
  std::ptrdiff_t in_place_shift(const State& state) const {
    if constexpr (Kind != plan::collective_kind::all_gather) {
      return 0;
    } else if constexpr (Blocks::are_given) {
      return -blocks.begin_of(state.rank());
    } else {
      return -static_cast<std::ptrdiff_t>(in.size()) * state.rank();
    }
  }

  template <class State>
  bool works_in_place(const State& state) const {
    if constexpr (Blocks::are_given && Kind == plan::collective_kind::all_to_all) return false;
    constexpr bool has_input = Kind == plan::collective_kind::all_gather || Kind == plan::collective_kind::all_to_all;
    return has_input && in.data() != nullptr && in.data() + in_place_shift(state) == out.data();
  }

  template <class State>
  call_request asked(const State& state) const {
    const plan::collective what{Kind, root};
    const auto count = static_cast<std::size_t>(what.blocks(state.size()));
    call_request request{.what = what,
                         .block_elements = out.size() / count,
                         .element_size = sizeof(T),
                         .in_place = works_in_place(state),
                         .type_signature = type_signature,
                         .types = types()};
    if constexpr (Blocks::are_given) blocks.describe(request);
    return request;
  }

 private:
  failure sizes(const char* rule) const {
    return make_failure(errc::invalid_argument, "in has " + std::to_string(in.size()) + " elements and out " +
                                                    std::to_string(out.size()) + "; " + rule);
  }
};

template <plan::collective_kind Kind, class T, class Blocks>
template <class State>
class move_spec<Kind, T, Blocks>::operation_state final : public operation {
 public:
  operation_state(State& state, const move_spec& spec, const planned_call& call, step_observer observer,
                  device_copies* on_device = nullptr)
      : places_(state, spec.blocks, call),
        run_(state,
             binding{call.plan, places_.layout(call), &kernel::copy_kernel_of<T>, nullptr,
                     reinterpret_cast<const std::byte*>(spec.in.data()), reinterpret_cast<std::byte*>(spec.out.data()),
                     call.signature, observer, call.checksummed, places_.out_layout(), on_device},
             call) {}

  machine_status advance() override { return run_.advance(); }
  const failure& reported() const override { return run_.cause(); }
  bool has_full_cause() const override { return run_.has_full_cause(); }
  void locate(error_context& context) override { run_.locate(context); }

 private:
  [[no_unique_address]] const typename Blocks::template places<State> places_;
  plan_run<State> run_;
};

template <plan::collective_kind Kind, class T, class Options, class Blocks = equal_blocks>
auto make_move_spec(std::span<const T> in, std::span<T> out, int root, const Options&, const Blocks& blocks = {}) {
  static_assert(!explain_device_options_of_a_host<Options>() ||
                    Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::observer, kind::integrity>,
                "with(...): this operation combines nothing, so it can't use one of these properties; wrap it in "
                "hint(...) to have it ignored");
  return move_spec<Kind, T, Blocks>{in, out, root, blocks};
}

}  // namespace detail
HOCKET_END_NAMESPACE
