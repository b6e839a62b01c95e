// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A map from 64-bit keys to indices that also works during constant evaluation, where `std::unordered_map` does not.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::detail {

inline constexpr std::uint32_t none = 0xffffffffU;

/// Open addressing, grown by doubling. Keys are never removed.
class index_map {
 public:
  /// Returns the index of `key`, or inserts the key with index `none`. The caller may assign the index.
  constexpr std::uint32_t& operator[](std::uint64_t key) {
    if (4 * (used_ + 1) > 3 * slots_.size()) grow();
    slot& found = find_slot(key);
    if (!found.taken) {
      found = {key, none, true};
      ++used_;
    }
    return found.index;
  }

  constexpr std::uint32_t find(std::uint64_t key) const {
    if (slots_.empty()) return none;
    for (std::size_t i = home(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (!slots_[i].taken) return none;
      if (slots_[i].key == key) return slots_[i].index;
    }
  }

 private:
  struct slot {
    std::uint64_t key = 0;
    std::uint32_t index = none;
    bool taken = false;
  };

  constexpr std::size_t home(std::uint64_t key) const noexcept {
    const std::uint64_t mixed = (key ^ (key >> 29)) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(mixed >> 24) & (slots_.size() - 1);
  }

  constexpr slot& find_slot(std::uint64_t key) noexcept {
    std::size_t i = home(key);
    while (slots_[i].taken && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

  constexpr void grow() {
    std::vector<slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (const slot& each : old) {
      if (each.taken) find_slot(each.key) = each;
    }
  }

  std::vector<slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace plan::detail
HOCKET_END_NAMESPACE
