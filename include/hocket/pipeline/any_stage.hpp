// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A type-erased stage of a pipeline, so that the executor is compiled once for stages of all types.
#pragma once

#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/pipeline/stage.hpp>
#include <hocket/pipeline/stage_diagnostics.hpp>
#include <hocket/schedule/schedule_action.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

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

  /// Deleted: the template argument `Why` is the reason.
  template <class Given, auto Why = detail::why_no_stage<Given>()>
  any_stage(Given&) = delete;  // NOLINT: as above

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
