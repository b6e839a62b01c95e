// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Cache of objects of other layers that live as long as a communicator or a mesh: objects that are costly to build and
/// depend on it. The cache does not need to know their types.
#pragma once

#include <hocket/core/config.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// At most one object of each type. The cache may be used from several threads; its objects synchronize themselves.
class attribute_cache {
 public:
  /// Returns the object of type T, which the first call creates.
  template <class T>
  T& get() {
    const std::lock_guard lock(mutex_);
    for (const auto& [type, object] : objects_) {
      if (type == &type_of<T>) return *static_cast<T*>(object.get());
    }
    const auto made = std::make_shared<T>();
    objects_.emplace_back(&type_of<T>, made);
    return *made;
  }

 private:
  template <class T>
  static constexpr char type_of = 0;  ///< its address identifies the type

  std::mutex mutex_;
  std::vector<std::pair<const char*, std::shared_ptr<void>>> objects_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
