// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which options conversions and redistributions accept: those that each collective accepts that may run. These are
/// families of options, as in collective/host/option_diagnostics.hpp.
#pragma once

#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/shard/compiled_plan.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/moves.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/redistribution_plan.hpp>
#include <hocket/shard/tensor.hpp>

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The options of a conversion from the placement `From` of a tensor whose elements are T: those of its collective.
/// A conversion that moves nothing ignores its options.
template <class From, class To, class T>
struct conversion_options {
  template <class Options>
  static consteval sentence explain() {
    using enum plan::collective_kind;
    constexpr conversion_kind kind = kind_of_conversion<From, To>;
    if constexpr (kind == conversion_kind::gather_to_all) {
      return move_options<all_gather>::explain<Options>();
    } else if constexpr (kind == conversion_kind::exchange) {
      return move_options<all_to_all>::explain<Options>();
    } else if constexpr (kind == conversion_kind::reduce_to_all) {
      return reduction_options<all_reduce, typename reduction_of<From>::type, T>::template explain<Options>();
    } else if constexpr (kind == conversion_kind::reduce_to_slices) {
      return reduction_options<reduce_scatter, typename reduction_of<From>::type, T>::template explain<Options>();
    } else {
      return {};
    }
  }
};

/// The options of one move of a redistribution of elements of T. `Partial` is the source's partial placement, or void.
template <move_kind Kind, class Partial, class T>
struct options_of_move {
  template <class Options>
  static consteval sentence explain() {
    using enum plan::collective_kind;
    using moving = std::remove_cvref_t<decltype(options_of_moves<!std::is_void_v<Partial>>(std::declval<Options&>()))>;
    if constexpr (Kind == move_kind::gather_to_all) {
      return move_options<all_gather>::explain<moving>();
    } else if constexpr (Kind == move_kind::exchange) {
      return move_options<all_to_all>::explain<moving>();
    } else if constexpr (std::is_void_v<Partial>) {
      return {};
    } else if constexpr (Kind == move_kind::reduce_to_all) {
      return reduction_options<all_reduce, typename reduction_of<Partial>::type, T>::template explain<Options>();
    } else if constexpr (Kind == move_kind::reduce_to_slices) {
      return reduction_options<reduce_scatter, typename reduction_of<Partial>::type, T>::template explain<Options>();
    } else {
      return {};
    }
  }
};

/// The options of a redistribution of `From`, whose plan is found at run time and may have moves of all kinds.
template <class From>
struct any_redistribution_options {
  template <class Options>
  static consteval sentence explain() {
    using partial_type = typename first_partial<typename From::placements_type>::type;
    using T = std::remove_const_t<typename From::element_type>;
    return first_of({options_of_move<move_kind::gather_to_all, partial_type, T>::template explain<Options>(),
                     options_of_move<move_kind::exchange, partial_type, T>::template explain<Options>(),
                     options_of_move<move_kind::reduce_to_all, partial_type, T>::template explain<Options>(),
                     options_of_move<move_kind::reduce_to_slices, partial_type, T>::template explain<Options>()});
  }
};

/// The options of a redistribution from the type `From` to `To` on one mesh. If its plan is a constant, only the moves
/// of that plan count.
template <class From, class To>
struct redistribution_options {
  template <class Options>
  static consteval sentence explain() {
    if constexpr (has_compiled_plan<From, To>()) {
      return explain_plan<Options>(std::make_index_sequence<compiled_plan<From, To>.size>());
    } else {
      return any_redistribution_options<From>::template explain<Options>();
    }
  }

 private:
  template <class Options, std::size_t... Index>
  static consteval sentence explain_plan(std::index_sequence<Index...>) {
    using partial_type = typename first_partial<typename From::placements_type>::type;
    using T = std::remove_const_t<typename From::element_type>;
    return first_of(
        {sentence(),
         options_of_move<compiled_plan<From, To>.moves[Index].kind, partial_type, T>::template explain<Options>()...});
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
