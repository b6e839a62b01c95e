// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The forms of calls: the arguments of each form in their order, and the mistakes in a call that is meant to have that
/// form. `explain` and, for buffers in device memory, `explain_device` return the first mistake.
#pragma once

#include <hocket/collective/detail/device_diagnostics.hpp>
#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// (communicator, in, out, op, options, code) or (communicator, in_place(buffer), op, options, code), with a root after
/// `op` if the collective has one.
template <plan::collective_kind Kind>
struct reduction_form {
  static constexpr const char* surplus =
      plan::collective{Kind, 0}.has_root()
          ? "too many arguments, or arguments in the wrong order: the call takes (communicator, in, out, operation, "
            "root, with(...), code)"
          : "too many arguments, or arguments in the wrong order: the call takes (communicator, in, out, operation, "
            "with(...), code)";

  template <class Arguments>
  static consteval sentence explain_buffers() {
    using in = typename Arguments::template at<1>;
    if (!Arguments::template has<1>) {
      return "a reduction takes (communicator, in, out, op, options), or in_place(buffer) "
             "instead of in and out";
    }
    if (constexpr sentence wrong = explain_input<in>(); wrong) return wrong;
    if (!Arguments::template has<2>) return "out is missing; use in_place(buffer) to have one buffer for both";
    return explain_pair<in, typename Arguments::template at<2>>();
  }

  template <class Arguments>
  static consteval sentence explain() {
    using first = typename Arguments::template plain<1>;
    if constexpr (is_in_place<first>::value && Kind == plan::collective_kind::reduce_scatter) {
      return refused_in_place;
    } else if constexpr (is_in_place<first>::value) {
      using T = typename decltype(first::elements)::element_type;
      constexpr sentence wrong = explain_element<T>();
      if constexpr (wrong) {
        return wrong;
      } else {
        return explain_operation_and_options<Kind, Arguments, 2, T>();
      }
    } else {
      constexpr sentence wrong = explain_buffers<Arguments>();
      if constexpr (wrong) {
        return wrong;
      } else {
        return explain_operation_and_options<Kind, Arguments, 3, element_type_t<typename Arguments::template at<2>>>();
      }
    }
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_collective<Kind, Arguments>();
  }
};

/// (communicator, in, out, options, code)
template <plan::collective_kind Kind>
struct moving_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, in, out, with(...), code)";

  template <class Arguments>
  static consteval sentence explain() {
    if (is_in_place<typename Arguments::template plain<1>>::value) {
      return refused_in_place;
    }
    if (!Arguments::template has<2>) return "the call needs (communicator, in, out)";
    return first_of({explain_pair<typename Arguments::template at<1>, typename Arguments::template at<2>>(),
                     explain_options<move_options<Kind>, Arguments, 3>()});
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_collective<Kind, Arguments>();
  }
};

/// (communicator, in, out, root, options, code)
template <plan::collective_kind Kind>
struct rooted_moving_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, in, out, root, with(...), "
      "code)";

  template <class Arguments>
  static consteval sentence explain() {
    if (is_in_place<typename Arguments::template plain<1>>::value) {
      return "only all_reduce and reduce take in_place(buffer): pass in and out, one of which may be this rank's block "
             "of the other";
    }
    if (!Arguments::template has<2>) return "the call needs (communicator, in, out)";
    return first_of({explain_pair<typename Arguments::template at<1>, typename Arguments::template at<2>>(),
                     explain_root<Arguments, 3>(), explain_options<move_options<Kind>, Arguments, 4>()});
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_collective<Kind, Arguments>();
  }
};

/// (communicator, in, out, counts, options, code); all_to_all_v has two `Counts`, reduce_scatter_v has an operation, and
/// gather_v and scatter_v have a root after the counts.
template <plan::collective_kind Kind, class... Counts>
struct uneven_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, in, out, counts, operation "
      "if it combines, root if it has one, with(...), code)";

  template <class Arguments>
  static consteval sentence explain_buffers_and_counts() {
    if (constexpr sentence wrong = explain_two_buffers<Arguments>(); wrong) return wrong;
    if (!Arguments::template has<2>) return "the call needs (communicator, in, out, counts)";
    return first_of({explain_pair<typename Arguments::template at<1>, typename Arguments::template at<2>>(),
                     explain_all_counts<Arguments, 3, Counts...>()});
  }

  template <class Arguments>
  static consteval sentence explain() {
    constexpr std::size_t after_counts = 3 + sizeof...(Counts);
    constexpr sentence wrong = explain_buffers_and_counts<Arguments>();
    if constexpr (wrong) {
      return wrong;
    } else if constexpr (plan::collective{Kind, 0}.reduces()) {
      using T = element_type_t<typename Arguments::template at<2>>;
      return explain_operation_and_options<Kind, Arguments, after_counts, T>();
    } else if constexpr (plan::collective{Kind, 0}.has_root()) {
      return first_of({explain_root<Arguments, after_counts>(),
                       explain_options<move_options<Kind>, Arguments, after_counts + 1>()});
    } else {
      return explain_options<move_options<Kind>, Arguments, after_counts>();
    }
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_uneven<Kind, Arguments, Counts...>();
  }
};

/// (communicator, buffer, root, options, code)
template <plan::collective_kind Kind>
struct rooted_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, buffer, root, with(...), "
      "code)";

  template <class Arguments>
  static consteval sentence explain() {
    using buffer = typename Arguments::template at<1>;
    if (!Arguments::template has<1>) return "the call needs (communicator, buffer)";
    return first_of({explain_output<buffer>(), explain_elements_of<buffer>(), explain_root<Arguments, 2>(),
                     explain_options<move_options<Kind>, Arguments, 3>()});
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_collective<Kind, Arguments>();
  }
};

/// (communicator, options, code)
template <plan::collective_kind Kind>
struct bare_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, with(...), code)";

  template <class Arguments>
  static consteval sentence explain() {
    return explain_options<move_options<Kind>, Arguments, 1>();
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain<Arguments>();  // it has no buffer
  }
};

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives>
struct message_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, buffer, peer, tag, "
      "with(...), code)";

  template <class Arguments>
  static consteval sentence explain() {
    using buffer = typename Arguments::template at<1>;
    if (!Arguments::template has<2>) return "the call needs (communicator, buffer, peer)";
    return first_of({Receives ? explain_output<buffer>() : explain_input<buffer>(), explain_elements_of<buffer>(),
                     explain_peer<Arguments, 2>(), explain_tag_argument<Arguments, 3>(),
                     explain_options<message_options, Arguments, 4>()});
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_one_way<Receives, Arguments>();
  }
};

/// (communicator, out, peer, in, peer, tag, options, code)
struct exchange_form {
  static constexpr const char* surplus =
      "too many arguments, or arguments in the wrong order: the call takes (communicator, out, peer, in, peer, tag, "
      "with(...), code)";

  template <class Arguments>
  static consteval sentence explain() {
    using sent = typename Arguments::template at<1>;
    using received = typename Arguments::template at<3>;
    if (!Arguments::template has<4>) return "the call needs (communicator, out, peer, in, peer)";
    return first_of({explain_input<sent>(), explain_peer<Arguments, 2>(), explain_output<received>(),
                     explain_elements_of<sent>(), explain_elements_of<received>(), explain_peer<Arguments, 4>(),
                     explain_tag_argument<Arguments, 5>(), explain_options<message_options, Arguments, 6>()});
  }

  template <class Arguments>
  static consteval sentence explain_device() {
    return explain_device_exchange<Arguments>();
  }
};

/// Returns the first mistake in a call of this form that matches no overload.
template <class Form, class... Arguments>
consteval sentence explain_misuse() {
  using list = argument_list<Arguments...>;
  if (constexpr sentence wrong = explain_communicator<list>(); wrong) return wrong;
  if constexpr ((is_device_buffer<std::remove_cvref_t<Arguments>> || ...)) {
    return first_of({Form::template explain_device<list>(), explain_surplus<Form, Arguments...>()});
  } else {
    return first_of(
        {Form::template explain<list>(), explain_lifetime<Arguments&&...>(), explain_surplus<Form, Arguments...>()});
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
