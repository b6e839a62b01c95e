// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The forms that calls have: what the arguments of each are, in their order, and what is wrong with those of a call that is
/// meant to have that form. `explain` and, for buffers in memory of devices, `explain_device` return true if they find nothing.
#pragma once

#include <hocket/collective/detail/explain_device.hpp>
#include <hocket/collective/host/explain_arguments.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// (communicator, in, out, op, options, code) or (communicator, in_place(buffer), op, options, code)
struct reduction_form {
  static constexpr bool combines = true;
  static constexpr bool is_rooted = false;

  template <class Arguments, std::size_t I, class T>
  static consteval bool explain_rest() {
    if constexpr (!explain_element<T>()) {
      return false;
    } else if constexpr (!Arguments::template has<I>) {
      return explain_operation<std::plus<>, T>();
    } else if constexpr (explain_operation<typename Arguments::template plain<I>, T>()) {
      return explain_options<Arguments, I + 1>();
    } else {
      return false;
    }
  }

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<1>,
                  "a reduction is called as (communicator, in, out, op, options), or with "
                  "in_place(buffer) in the place of in and out");
    using first = typename Arguments::template plain<1>;
    if constexpr (is_in_place<first>::value) {
      return explain_rest<Arguments, 2, typename decltype(first::elements)::element_type>();
    } else if constexpr (!Arguments::template has<1>) {
      return false;
    } else if constexpr (explain_input<typename Arguments::template at<1>>()) {
      static_assert(Arguments::template has<2>, "out is missing; use in_place(buffer) to have one buffer for both");
      if constexpr (!Arguments::template has<2>) {
        return false;
      } else if constexpr (explain_output<typename Arguments::template at<2>>()) {
        using in = typename Arguments::template at<1>;
        using out = typename Arguments::template at<2>;
        if constexpr (explain_same_elements<in, out>()) return explain_rest<Arguments, 3, element_type_t<out>>();
      }
    }
    return false;
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain_device_collective<reduction_form, Arguments>();
  }
};

/// (communicator, in, out, options, code)
struct moving_form {
  static constexpr bool combines = false;
  static constexpr bool is_rooted = false;

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<2>, "the call needs (communicator, in, out)");
    if constexpr (Arguments::template has<2>) {
      using in = typename Arguments::template at<1>;
      using out = typename Arguments::template at<2>;
      if constexpr (explain_input<in>() && explain_output<out>()) {
        if constexpr (explain_same_elements<in, out>() && explain_element<element_type_t<out>>()) {
          return explain_options<Arguments, 3>();
        }
      }
    }
    return false;
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain_device_collective<moving_form, Arguments>();
  }
};

/// (communicator, in, out, counts, options, code); all_to_all_v with two `Counts`, reduce_scatter_v with an operation.
template <bool Reduces, class... Counts>
struct uneven_form {
  static constexpr std::size_t after_counts = 3 + sizeof...(Counts);

  template <class Arguments, class T>
  static consteval bool explain_rest() {
    if constexpr (!Reduces) {
      return explain_options<Arguments, after_counts>();
    } else if constexpr (!Arguments::template has<after_counts>) {
      return explain_operation<std::plus<>, T>();
    } else if constexpr (explain_operation<typename Arguments::template plain<after_counts>, T>()) {
      return explain_options<Arguments, after_counts + 1>();
    } else {
      return false;
    }
  }

  template <class Arguments>
  static consteval bool explain() {
    if constexpr (explain_two_buffers<Arguments>()) {
      static_assert(Arguments::template has<2>, "the call needs (communicator, in, out, counts)");
      if constexpr (Arguments::template has<2>) {
        using in = typename Arguments::template at<1>;
        using out = typename Arguments::template at<2>;
        if constexpr (explain_input<in>() && explain_output<out>()) {
          if constexpr (explain_same_elements<in, out>() && explain_element<element_type_t<out>>()) {
            if constexpr (explain_all_counts<Arguments, 3, Counts...>()) {
              return explain_rest<Arguments, element_type_t<out>>();
            }
          }
        }
      }
    }
    return false;
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain_device_uneven<Reduces, Arguments, Counts...>();
  }
};

/// (communicator, buffer, root, options, code)
struct rooted_form {
  static constexpr bool combines = false;
  static constexpr bool is_rooted = true;

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<1>, "the call needs (communicator, buffer)");
    if constexpr (Arguments::template has<1>) {
      using buffer = typename Arguments::template at<1>;
      if constexpr (explain_output<buffer>()) {
        if constexpr (explain_element<element_type_t<buffer>>()) {
          constexpr bool rooted = is_or_missing<Arguments, 2, root>;
          static_assert(rooted, "the root is said as root{0}, after the buffer and before with(...)");
          return rooted && explain_options<Arguments, 3>();
        }
      }
    }
    return false;
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain_device_collective<rooted_form, Arguments>();
  }
};

/// (communicator, options, code)
struct bare_form {
  template <class Arguments>
  static consteval bool explain() {
    return explain_options<Arguments, 1>();
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain<Arguments>();  // it has no buffer
  }
};

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives>
struct message_form {
  template <class Buffer>
  static consteval bool explain_buffer() {
    if constexpr (Receives) {
      return explain_output<Buffer>();
    } else {
      return explain_input<Buffer>();
    }
  }

  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<2>, "the call needs (communicator, buffer, peer)");
    if constexpr (Arguments::template has<2>) {
      using buffer = typename Arguments::template at<1>;
      if constexpr (explain_buffer<buffer>()) {
        if constexpr (explain_element<element_type_t<buffer>>() && explain_peer<Arguments, 2>()) {
          return explain_said_tag<Arguments, 3>() && explain_options<Arguments, 4>();
        }
      }
    }
    return false;
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain_device_one_way<Receives, Arguments>();
  }
};

/// (communicator, out, peer, in, peer, tag, options, code)
struct exchange_form {
  template <class Arguments>
  static consteval bool explain() {
    static_assert(Arguments::template has<4>, "the call needs (communicator, out, peer, in, peer)");
    if constexpr (Arguments::template has<4>) {
      using sent = typename Arguments::template at<1>;
      using received = typename Arguments::template at<3>;
      if constexpr (explain_input<sent>() && explain_peer<Arguments, 2>() && explain_output<received>()) {
        if constexpr (explain_element<element_type_t<sent>>() && explain_element<element_type_t<received>>() &&
                      explain_peer<Arguments, 4>()) {
          return explain_said_tag<Arguments, 5>() && explain_options<Arguments, 6>();
        }
      }
    }
    return false;
  }

  template <class Arguments>
  static consteval bool explain_device() {
    return explain_device_exchange<Arguments>();
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
