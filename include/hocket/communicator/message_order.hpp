// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The order of a communicator's messages in flight: messages with equal peer, channel and tag are sent, and received,
/// in the order of their calls, whichever the caller waits for first.
///
/// Each message knows the one before it, which a hash table of the last messages finds, so that any number of messages
/// costs the same time each. The links are part of the messages: only the table allocates memory.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The messages of one direction. It must outlive its places.
class message_order {
 public:
  /// The place of a message, from its construction until its destruction.
  class place {
   public:
    place(message_order& order, int peer, std::uint32_t channel, std::uint32_t tag)
        : order_(order), peer_(peer), channel_(channel), tag_(tag) {
      order_.add(*this);
    }
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place() { order_.remove(*this); }

    /// Returns whether no earlier message with equal peer, channel and tag has a place.
    bool is_first() const noexcept { return earlier_ == nullptr; }

   private:
    friend message_order;

    bool has_key_of(const place& other) const noexcept {
      return tag_ == other.tag_ && peer_ == other.peer_ && channel_ == other.channel_;
    }
    std::size_t hash() const noexcept {
      constexpr std::uint64_t golden = 0x9E37'79B9'7F4A'7C15U;  // Fibonacci hashing, twice
      const std::uint64_t half = (std::uint64_t{channel_} << 32 | tag_) * golden >> 32;
      return static_cast<std::size_t>((half << 32 | static_cast<std::uint32_t>(peer_)) * golden >> 32);
    }

    message_order& order_;
    const int peer_;
    const std::uint32_t channel_;
    const std::uint32_t tag_;
    place* earlier_ = nullptr;  ///< with equal key
    place* later_ = nullptr;
    place* next_in_bucket_ = nullptr;  ///< with another key, if this is the last of its key
  };

  message_order() = default;
  message_order(const message_order&) = delete;
  message_order& operator=(const message_order&) = delete;

  std::size_t size() const noexcept { return size_; }

  /// Allocates memory for `more` further places.
  void reserve(std::size_t more) {
    if (size_ + more > last_of_keys_.size()) rehash(size_ + more);
  }

 private:
  void add(place& one) {
    reserve(1);
    place*& bucket = bucket_of(one);
    place** const last = find_last(bucket, one);
    if (place* const before = *last; before != nullptr) {
      before->later_ = &one;
      one.earlier_ = before;
      one.next_in_bucket_ = before->next_in_bucket_;
      *last = &one;
    } else {
      one.next_in_bucket_ = bucket;
      bucket = &one;
    }
    ++size_;
  }

  void remove(place& one) noexcept {
    if (one.later_ == nullptr) {
      place** const last = find_last(bucket_of(one), one);
      if (one.earlier_ != nullptr) {
        one.earlier_->next_in_bucket_ = one.next_in_bucket_;
        *last = one.earlier_;
      } else {
        *last = one.next_in_bucket_;
      }
    } else {
      one.later_->earlier_ = one.earlier_;
    }
    if (one.earlier_ != nullptr) one.earlier_->later_ = one.later_;
    --size_;
  }

  place*& bucket_of(const place& one) noexcept { return last_of_keys_[one.hash() & (last_of_keys_.size() - 1)]; }

  /// Returns the pointer to the last place with the key of `one`, or the pointer that ends the bucket's list.
  static place** find_last(place*& bucket, const place& one) noexcept {
    place** at = &bucket;
    while (*at != nullptr && !(*at)->has_key_of(one)) at = &(*at)->next_in_bucket_;
    return at;
  }

  void rehash(std::size_t places) {
    std::size_t buckets = 16;
    while (buckets < places) buckets *= 2;
    std::vector<place*> old(buckets);
    old.swap(last_of_keys_);
    for (place* each : old) {
      while (each != nullptr) {
        place* const next = each->next_in_bucket_;
        place*& bucket = bucket_of(*each);
        each->next_in_bucket_ = bucket;
        bucket = each;
        each = next;
      }
    }
  }

  std::vector<place*> last_of_keys_;  ///< by hash; a power of two
  std::size_t size_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
