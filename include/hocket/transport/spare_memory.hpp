// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Free list for objects that exist once per message, so that a program's second step allocates nothing.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// Must outlive the objects that it makes.
template <class T>
class spare_memory {
 public:
  class recycling_deleter {
   public:
    recycling_deleter() = default;
    explicit recycling_deleter(spare_memory& to) noexcept : to_(&to) {}
    void operator()(T* one) const noexcept {
      std::destroy_at(one);
      to_->unused_ = ::new (static_cast<void*>(one)) room{to_->unused_};
    }

   private:
    spare_memory* to_ = nullptr;
  };
  using pointer = std::unique_ptr<T, recycling_deleter>;

  spare_memory() = default;
  spare_memory(const spare_memory&) = delete;
  spare_memory& operator=(const spare_memory&) = delete;
  ~spare_memory() {
    while (unused_ != nullptr) ::operator delete(std::exchange(unused_, unused_->next), alignment);
  }

  /// Returns null if memory is exhausted.
  template <class... Arguments>
  pointer make(Arguments&&... arguments) noexcept {
    void* const place =
        unused_ != nullptr ? std::exchange(unused_, unused_->next) : ::operator new(size, alignment, std::nothrow);
    if (place == nullptr) return {};
    return pointer(::new (place) T(std::forward<Arguments>(arguments)...), recycling_deleter(*this));
  }

 private:
  struct room {
    room* next;
  };
  static_assert(sizeof(T) >= sizeof(room) && alignof(T) >= alignof(room));
  static constexpr std::size_t size = sizeof(T);
  static constexpr std::align_val_t alignment{alignof(T)};

  room* unused_ = nullptr;
};

}  // namespace transport
HOCKET_END_NAMESPACE
