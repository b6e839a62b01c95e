// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The stage of a pipeline: a user-defined type with a forward and a backward pass. The executor moves activations and
/// gradients between stages; the user defines the computations of a stage.
///
/// @code
/// struct my_stage {
///   using input_type = float;   // element type of the input, any trivially copyable type
///   using output_type = float;  // element type of the output
///   std::size_t input_size() const;
///   std::size_t output_size() const;
///   void forward(int microbatch, std::span<const float> in, std::span<float> out);
///   void backward(int microbatch, std::span<const float> in, std::span<const float> out_gradient,
///                 std::span<float> in_gradient);
/// };
/// @endcode
///
/// For schedules that separate the two gradients, instead of `backward` or in addition to it:
/// `input_gradient(microbatch, in, out_gradient, in_gradient)` and `weight_gradient(microbatch, in, out_gradient)`. `in`
/// is the input of `forward`; `out_gradient` remains valid until both have returned. The stage must store anything else
/// that the gradients need, by microbatch. Gradients of parameters add up inside the stage.
///
/// For schedules with recomputation of activations (R): `forget(microbatch)`, called right after the forward pass,
/// frees the activations that the stage stores for the gradients. `recompute(microbatch, in)`, called before these with
/// the same `in`, computes them again. Neither is called for microbatches for which the schedule has no R.
///
/// The first stage has `input_size()` 0 and fetches its microbatch itself; the last one has `output_size()` 0 and
/// computes the loss itself. Required if the schedule lists them: `unshard()`, `reshard()`, `reduce_gradient()`,
/// `wait_reduce_gradient()` and `update()`, the optimizer's step. Optional: `int stage_number() const`, the number of
/// the stage in the model: stages in the wrong order are then refused even if their sizes are equal.
#pragma once

#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/pipeline/buffers.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

/// A stage with `backward`.
template <class Stage>
concept has_backward = requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in,
                                std::span<const typename Stage::output_type> out_gradient,
                                std::span<typename Stage::input_type> in_gradient) {
  stage.backward(microbatch, in, out_gradient, in_gradient);
};

/// A stage with `input_gradient` and `weight_gradient`.
template <class Stage>
concept has_gradients_apart = requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in,
                                       std::span<const typename Stage::output_type> out_gradient,
                                       std::span<typename Stage::input_type> in_gradient) {
  stage.input_gradient(microbatch, in, out_gradient, in_gradient);
  stage.weight_gradient(microbatch, in, out_gradient);
};

/// An element type for the buffers between stages: trivially copyable, with at most the alignment of a cache line.
template <class T>
concept stage_element = std::is_trivially_copyable_v<T> && alignof(T) <= buffers::alignment;

/// A stage of a model, with at least one form of the backward pass: see stage.hpp.
template <class Stage>
concept stage = stage_element<typename Stage::input_type> && stage_element<typename Stage::output_type> &&
                requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in,
                         std::span<typename Stage::output_type> out) {
                  { stage.input_size() } -> std::convertible_to<std::size_t>;
                  { stage.output_size() } -> std::convertible_to<std::size_t>;
                  stage.forward(microbatch, in, out);
                } &&
                (has_backward<Stage> || has_gradients_apart<Stage>);

/// A stage with `forget` and `recompute`.
template <class Stage>
concept has_recompute = requires(Stage& stage, int microbatch, std::span<const typename Stage::input_type> in) {
  stage.forget(microbatch);
  stage.recompute(microbatch, in);
};

/// A stage with `stage_number`.
template <class Stage>
concept has_stage_number = requires(const Stage& stage) {
  { stage.stage_number() } -> std::convertible_to<int>;
};

namespace detail {

/// A type that resembles a stage, but may lack something.
template <class Given>
concept meant_as_stage = requires { typename Given::input_type; } || requires { typename Given::output_type; } ||
                         requires { &Given::forward; };

template <class Given>
concept names_elements = requires {
  typename Given::input_type;
  typename Given::output_type;
};

/// Reports, by a static_assert, the first thing that `Given` lacks to be a stage.
template <class Given>
constexpr void refuse_as_stage() {
  static_assert(!std::is_const_v<Given>, "a stage can't be const: its passes change it");
  static_assert(names_elements<Given>,
                "a stage must declare its element types: using input_type = float; using output_type = float;");
  if constexpr (!std::is_const_v<Given> && names_elements<Given>) {
    using in = typename Given::input_type;
    using out = typename Given::output_type;
    constexpr bool fits = stage_element<in> && stage_element<out>;
    static_assert(fits,
                  "input_type and output_type of a stage must be trivially copyable, with at most the alignment of a "
                  "cache line");
    constexpr bool has_sizes = requires(Given& given) {
      { given.input_size() } -> std::convertible_to<std::size_t>;
      { given.output_size() } -> std::convertible_to<std::size_t>;
    };
    static_assert(!fits || has_sizes,
                  "a stage must return its numbers of input and output elements per microbatch, 0 if it has none: "
                  "std::size_t input_size() const; std::size_t output_size() const;");
    constexpr bool has_forward =
        requires(Given& given, std::span<const in> from, std::span<out> to) { given.forward(0, from, to); };
    static_assert(
        !fits || !has_sizes || has_forward,
        "a stage must have void forward(int microbatch, std::span<const input_type> in, std::span<output_type> out)");
    static_assert(
        !fits || !has_sizes || !has_forward || has_backward<Given> || has_gradients_apart<Given>,
        "a stage must have void backward(int microbatch, std::span<const input_type> in, std::span<const output_type> "
        "out_gradient, std::span<input_type> in_gradient), or input_gradient with the same parameters and "
        "weight_gradient with all of them except the last");
  }
}

}  // namespace detail

/// Returns the name of the stage's function for a task without a microbatch.
constexpr const char* function_of(plan::pipeline::task_kind what) noexcept {
  using plan::pipeline::task_kind;
  switch (what) {
    case task_kind::unshard: return "unshard()";
    case task_kind::reshard: return "reshard()";
    case task_kind::reduce_gradient: return "reduce_gradient()";
    case task_kind::wait_reduce_gradient: return "wait_reduce_gradient()";
    case task_kind::update: return "update()";
    default: return "";
  }
}

/// Size and type of a stage's input or output per microbatch.
struct tensor_form {
  std::size_t count = 0;           ///< of elements
  std::size_t element_bytes = 0;   ///< size of an element
  std::uint32_t element_type = 0;  ///< a signature, equal for equal types in programs of the same compiler

  std::size_t bytes() const noexcept { return count * element_bytes; }  ///< size of all elements
  friend bool operator==(const tensor_form&, const tensor_form&) = default;
};

/// A type-erased stage. Refers to the user's object, which must outlive it.
class any_stage {
 public:
  /// Refers to `object`.
  template <stage Stage>
  any_stage(Stage& object)  // NOLINT: implicit, so that a list of stages can be written as such
      : object_(&object), table_(&table_of<Stage>) {}

  /// Never compiles: reports what `Given` lacks to be a stage.
  template <class Given>
    requires(!stage<Given> && detail::meant_as_stage<Given>)
  any_stage(Given&) {  // NOLINT: as above
    detail::refuse_as_stage<Given>();
  }

  /// Returns the number of the stage in the model, if the stage has `stage_number()`.
  std::optional<int> number() const { return table_->number(object_); }
  tensor_form input() const { return table_->input(object_); }    ///< form of the input
  tensor_form output() const { return table_->output(object_); }  ///< form of the output
  /// Returns whether the stage has `input_gradient` and `weight_gradient`.
  bool has_gradients_apart() const noexcept { return table_->gradients_apart; }
  /// Whether the stage has `forget` and `recompute`.
  bool has_recompute() const noexcept { return table_->recomputes; }

  /// Calls the stage's `forward`.
  void forward(int microbatch, std::span<const std::byte> in, std::span<std::byte> out) const {
    table_->forward(object_, microbatch, in, out);
  }
  /// Calls the stage's `backward`.
  void backward(int microbatch, std::span<const std::byte> in, std::span<const std::byte> out_gradient,
                std::span<std::byte> in_gradient) const {
    table_->backward(object_, microbatch, in, out_gradient, in_gradient);
  }
  /// Calls the stage's `input_gradient`.
  void input_gradient(int microbatch, std::span<const std::byte> in, std::span<const std::byte> out_gradient,
                      std::span<std::byte> in_gradient) const {
    table_->input_gradient(object_, microbatch, in, out_gradient, in_gradient);
  }
  /// Calls the stage's `weight_gradient`.
  void weight_gradient(int microbatch, std::span<const std::byte> in, std::span<const std::byte> out_gradient) const {
    table_->weight_gradient(object_, microbatch, in, out_gradient);
  }
  void forget(int microbatch) const { table_->forget(object_, microbatch); }  ///< calls the stage's `forget`
  /// Calls the stage's `recompute`.
  void recompute(int microbatch, std::span<const std::byte> in) const { table_->recompute(object_, microbatch, in); }
  /// Returns whether the stage has the function that `on` calls.
  bool has(plan::pipeline::task_kind what) const noexcept { return table_->has(what); }
  /// Calls unshard, reshard, reduce_gradient, wait_reduce_gradient or update.
  void on(plan::pipeline::task_kind what) const { table_->on(object_, what); }

 private:
  using bytes = std::span<const std::byte>;
  using writable_bytes = std::span<std::byte>;

  struct table {
    std::optional<int> (*number)(const void*);
    tensor_form (*input)(const void*);
    tensor_form (*output)(const void*);
    void (*forward)(void*, int, bytes, writable_bytes);
    void (*backward)(void*, int, bytes, bytes, writable_bytes);
    void (*input_gradient)(void*, int, bytes, bytes, writable_bytes);
    void (*weight_gradient)(void*, int, bytes, bytes);
    void (*forget)(void*, int);
    void (*recompute)(void*, int, bytes);
    bool (*has)(plan::pipeline::task_kind) noexcept;
    void (*on)(void*, plan::pipeline::task_kind);
    bool gradients_apart;
    bool recomputes;
  };

  template <class T>
  static std::span<const T> read(bytes from) noexcept {
    return {reinterpret_cast<const T*>(from.data()), from.size() / sizeof(T)};
  }
  template <class T>
  static std::span<T> write(writable_bytes to) noexcept {
    return {reinterpret_cast<T*>(to.data()), to.size() / sizeof(T)};
  }

  template <class Stage>
  struct calls {
    using in_type = typename Stage::input_type;
    using out_type = typename Stage::output_type;
    static Stage& self(void* object) noexcept { return *static_cast<Stage*>(object); }

    static std::optional<int> number(const void* object) {
      if constexpr (has_stage_number<Stage>) return static_cast<const Stage*>(object)->stage_number();
      else return std::nullopt;
    }
    static tensor_form input(const void* object) {
      return {static_cast<const Stage*>(object)->input_size(), sizeof(in_type),
              hocket::detail::type_signature<in_type>()};
    }
    static tensor_form output(const void* object) {
      return {static_cast<const Stage*>(object)->output_size(), sizeof(out_type),
              hocket::detail::type_signature<out_type>()};
    }
    static void forward(void* object, int microbatch, bytes in, writable_bytes out) {
      self(object).forward(microbatch, read<in_type>(in), write<out_type>(out));
    }
    static void backward(void* object, int microbatch, bytes in, bytes out_gradient, writable_bytes in_gradient) {
      if constexpr (has_backward<Stage>) {
        self(object).backward(microbatch, read<in_type>(in), read<out_type>(out_gradient), write<in_type>(in_gradient));
      } else {
        input_gradient(object, microbatch, in, out_gradient, in_gradient);
        weight_gradient(object, microbatch, in, out_gradient);
      }
    }
    static void input_gradient(void* object, int microbatch, bytes in, bytes out_gradient, writable_bytes in_gradient) {
      if constexpr (pipeline::has_gradients_apart<Stage>) {
        self(object).input_gradient(microbatch, read<in_type>(in), read<out_type>(out_gradient),
                                    write<in_type>(in_gradient));
      }
    }
    static void weight_gradient(void* object, int microbatch, bytes in, bytes out_gradient) {
      if constexpr (pipeline::has_gradients_apart<Stage>) {
        self(object).weight_gradient(microbatch, read<in_type>(in), read<out_type>(out_gradient));
      }
    }
    static void forget(void* object, int microbatch) {
      if constexpr (pipeline::has_recompute<Stage>) self(object).forget(microbatch);
    }
    static void recompute(void* object, int microbatch, bytes in) {
      if constexpr (pipeline::has_recompute<Stage>) self(object).recompute(microbatch, read<in_type>(in));
    }
    static constexpr bool has(plan::pipeline::task_kind what) noexcept {
      using plan::pipeline::task_kind;
      switch (what) {
        case task_kind::unshard: return requires(Stage& stage) { stage.unshard(); };
        case task_kind::reshard: return requires(Stage& stage) { stage.reshard(); };
        case task_kind::reduce_gradient: return requires(Stage& stage) { stage.reduce_gradient(); };
        case task_kind::wait_reduce_gradient: return requires(Stage& stage) { stage.wait_reduce_gradient(); };
        case task_kind::update: return requires(Stage& stage) { stage.update(); };
        default: return false;
      }
    }
    static void on(void* object, plan::pipeline::task_kind what) {
      using plan::pipeline::task_kind;
      if constexpr (requires(Stage& stage) { stage.unshard(); }) {
        if (what == task_kind::unshard) self(object).unshard();
      }
      if constexpr (requires(Stage& stage) { stage.reshard(); }) {
        if (what == task_kind::reshard) self(object).reshard();
      }
      if constexpr (requires(Stage& stage) { stage.reduce_gradient(); }) {
        if (what == task_kind::reduce_gradient) self(object).reduce_gradient();
      }
      if constexpr (requires(Stage& stage) { stage.wait_reduce_gradient(); }) {
        if (what == task_kind::wait_reduce_gradient) self(object).wait_reduce_gradient();
      }
      if constexpr (requires(Stage& stage) { stage.update(); }) {
        if (what == task_kind::update) self(object).update();
      }
    }
  };

  template <class Stage>
  static constexpr table table_of{&calls<Stage>::number,
                                  &calls<Stage>::input,
                                  &calls<Stage>::output,
                                  &calls<Stage>::forward,
                                  &calls<Stage>::backward,
                                  &calls<Stage>::input_gradient,
                                  &calls<Stage>::weight_gradient,
                                  &calls<Stage>::forget,
                                  &calls<Stage>::recompute,
                                  &calls<Stage>::has,
                                  &calls<Stage>::on,
                                  pipeline::has_gradients_apart<Stage>,
                                  pipeline::has_recompute<Stage>};

  void* object_;
  const table* table_;
};

}  // namespace pipeline
HOCKET_END_NAMESPACE
