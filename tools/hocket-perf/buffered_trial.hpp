// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The common base of all trials: where contributions and results lie for each collective, and which element of which
/// rank's contribution each result must contain.
#pragma once

#include "device_side.hpp"
#include "distribution.hpp"
#include "trial.hpp"

#include <hocket/collective/device/memory.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/group/allocate.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace perf {

/// Memory for elements of T: private host memory, host memory that other ranks can read, or a device buffer.
template <class T>
class area {
 public:
  template <class Domain>
  void reserve(const hocket::communicator<Domain>& comm, std::size_t size, bool shared, device_side* device) {
    if (device != nullptr) {
      elements_ = {static_cast<T*>(device->allocate(std::max<std::size_t>(size, 1) * sizeof(T))), size};
    } else if (shared) {
      shared_ = hocket::allocate<T>(comm, size);
      elements_ = shared_.span();
    } else {
      elements_ = {reinterpret_cast<T*>(private_.get(size * sizeof(T))), size};
      std::ranges::fill(std::as_writable_bytes(elements_), std::byte{});
    }
  }
  std::span<T> first(std::size_t count) const { return elements_.first(count); }

 private:
  hocket::shared_buffer<T> shared_;
  hocket::detail::growing_buffer private_;
  std::span<T> elements_;
};

/// Writes the cache lines of `memory` back and evicts them. Without SSE2 it rewrites them, which evicts them at least
/// from the caches of other cores.
inline void drop_from_caches(std::span<std::byte> memory) {
  for (std::size_t i = 0; i < memory.size(); i += hocket::platform::cache_line) {
#if defined(__SSE2__)
    _mm_clflush(&memory[i]);
#else
    volatile std::byte& line = memory[i];
    line = static_cast<std::byte>(line);
#endif
  }
#if defined(__SSE2__)
  _mm_mfence();
#endif
}

/// A trial on elements of T. In-place calls use the first area for both contribution and result.
template <class Domain, class T>
class buffered_trial : public trial {
 public:
  buffered_trial(const hocket::communicator<Domain>& comm, const subject& what) : comm_(comm), what_(what) {
    if (what.buffers != memory::host) device_ = std::make_unique<device_side>(what.buffers, comm.rank());
  }

  bool has(placement where) const override { return has_placement(what_.what, where); }

  void reserve(std::size_t elements) override {
    resize(elements);
    std::size_t largest = elements * (has_blocks() ? ranks() : 1);
    // The rank with the longest block receives that much from every rank.
    if (what_.what == collective::all_to_all_v) largest = std::max(largest, ranks() * std::ranges::max(lengths_));
    for (auto& each : areas_) each.reserve(comm_, largest, what_.shared_memory, device_.get());
  }

  void resize(std::size_t elements) override {
    block_ = elements;
    const distribution how = takes_counts(what_.what) ? what_.blocks : distribution::even;
    lengths_ = block_lengths(how, comm_.size(), elements * ranks());
    received_.assign(ranks(), own_length());
    offsets_.clear();
    for (std::size_t i = 0; i < ranks(); ++i) offsets_.push_back(block_offset(lengths_, i));
  }

  void write(placement where, contents values) override {
    edit(output(where),
         [](std::span<T> result) { std::ranges::fill(std::as_writable_bytes(result), std::byte{0xa5}); });
    if (!contributes()) return;
    edit(input(where), [&](std::span<T> contribution) {
      for (std::size_t i = 0; i < contribution.size(); ++i) contribution[i] = value(comm_.rank(), i, values);
    });
  }

  std::uint64_t count_wrong(placement where, contents values) const override {
    std::vector<T> mirror;
    const std::span<const T> result = readable(output(where), mirror);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const T right = expected(i, values);
      wrong += std::memcmp(&result[i], &right, sizeof(T)) != 0 ? 1U : 0U;
    }
    return wrong;
  }

  bool keeps_contribution(placement where) const override {
    return where == placement::out_of_place || !reduces(what_.what);
  }

  void spoil(placement where, std::size_t elements) override {
    edit(output(where), [&](std::span<T> result) {
      const auto bytes = std::as_writable_bytes(result);
      for (std::size_t i = 0; i < std::min(elements * sizeof(T), bytes.size()); i += sizeof(T))
        bytes[i] ^= std::byte{1};
    });
  }

  void chill() override {
    const std::size_t sizes[] = {has_blocks() ? block_ * ranks() : block_, output(placement::out_of_place).size()};
    for (std::size_t i = 0; i < 2; ++i) drop_from_caches(std::as_writable_bytes(areas_[i].first(sizes[i])));
  }

 protected:
  std::span<T> input(placement where) const {
    if (!contributes()) return {};
    if (gathers() && gets_result() && where == placement::in_place) return own_block();
    return areas_[0].first(gathers() ? own_length() : has_blocks() ? block_ * ranks() : block_);
  }

  std::span<T> output(placement where) const {
    if (!gets_result()) return {};
    std::size_t count = block_;
    if (gathers() || what_.what == collective::all_to_all) count = block_ * ranks();
    if (scatters()) count = own_length();
    if (what_.what == collective::all_to_all_v) count = own_length() * ranks();
    if (where == placement::out_of_place) return areas_[1].first(count);
    return scatters() && contributes() ? own_block() : areas_[0].first(count);
  }

  /// The length of each rank's block.
  hocket::counts counts() const { return {lengths_}; }
  /// What this rank sends to each rank in an all_to_all_v, and receives from each.
  hocket::send_counts send_counts() const { return {lengths_}; }
  hocket::receive_counts receive_counts() const { return {received_}; }

  /// The device that owns the buffers; null for host memory.
  device_side* device() const { return device_.get(); }

  /// Calls `call(place)`, where `place(elements)` returns a device buffer of the measured kind of memory.
  template <class Call>
  void placed(const Call& call) const {
    switch (what_.buffers) {
      case memory::device: return call([](std::span<T> all) { return hocket::cuda::device(all.data(), all.size()); });
      case memory::pinned: return call([](std::span<T> all) { return hocket::cuda::pinned(all.data(), all.size()); });
      case memory::managed: return call([](std::span<T> all) { return hocket::cuda::managed(all.data(), all.size()); });
      case memory::host: break;
    }
  }

  std::size_t ranks() const { return static_cast<std::size_t>(comm_.size()); }
  /// The neighbours of send_recv.
  int next() const { return (comm_.rank() + 1) % comm_.size(); }
  int previous() const { return (comm_.rank() + comm_.size() - 1) % comm_.size(); }

  const hocket::communicator<Domain>& comm_;
  const subject what_;
  std::size_t block_ = 0;

 private:
  /// Returns the contribution of `rank` at `position`.
  virtual T value(int rank, std::size_t position, contents values) const = 0;
  /// Returns the combination of all ranks' elements at `position`.
  virtual T combined(std::size_t position, contents values) const = 0;

  T expected(std::size_t position, contents values) const {
    switch (what_.what) {
      case collective::all_reduce:
      case collective::reduce: return combined(position, values);
      case collective::reduce_scatter:
      case collective::reduce_scatter_v: return combined(own_offset() + position, values);
      case collective::all_gather:
      case collective::all_gather_v:
      case collective::gather:
      case collective::gather_v: {
        const std::size_t source = block_at(position);
        return value(static_cast<int>(source), position - offsets_[source], values);
      }
      case collective::all_to_all:
      case collective::all_to_all_v:
        return value(static_cast<int>(position / own_length()), own_offset() + position % own_length(), values);
      case collective::broadcast: return value(what_.root, position, values);
      case collective::scatter:
      case collective::scatter_v: return value(what_.root, own_offset() + position, values);
      case collective::send_recv: return value(previous(), position, values);
      case collective::barrier: break;
    }
    return T{};
  }

  /// Returns `elements` in memory that the host can read; copies them to `mirror` if necessary.
  std::span<const T> readable(std::span<T> elements, std::vector<T>& mirror) const {
    if (!device_) return elements;
    mirror.resize(elements.size());
    device_->copy(mirror.data(), elements.data(), elements.size_bytes());
    return mirror;
  }
  template <class Body>
  void edit(std::span<T> elements, const Body& body) const {
    if (!device_) return body(elements);
    std::vector<T> mirror;
    static_cast<void>(readable(elements, mirror));
    body(std::span<T>(mirror));
    device_->copy(elements.data(), mirror.data(), elements.size_bytes());
  }

  bool has_blocks() const {
    return gathers() || scatters() || what_.what == collective::all_to_all || what_.what == collective::all_to_all_v;
  }
  bool gathers() const {
    return what_.what == collective::all_gather || what_.what == collective::all_gather_v || gathers_to_root();
  }
  bool gathers_to_root() const { return what_.what == collective::gather || what_.what == collective::gather_v; }
  bool scatters() const {
    return what_.what == collective::reduce_scatter || what_.what == collective::reduce_scatter_v ||
           scatters_from_root();
  }
  bool scatters_from_root() const { return what_.what == collective::scatter || what_.what == collective::scatter_v; }
  bool is_root() const { return comm_.rank() == what_.root; }
  bool contributes() const { return is_root() || (what_.what != collective::broadcast && !scatters_from_root()); }
  bool gets_result() const { return is_root() || (what_.what != collective::reduce && !gathers_to_root()); }

  std::size_t own_rank() const { return static_cast<std::size_t>(comm_.rank()); }
  std::size_t own_length() const { return lengths_[own_rank()]; }
  std::size_t own_offset() const { return offsets_[own_rank()]; }
  std::span<T> own_block() const { return areas_[0].first(block_ * ranks()).subspan(own_offset(), own_length()); }
  /// Returns the block that contains this position of all blocks.
  std::size_t block_at(std::size_t position) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(offsets_, position) - offsets_.begin()) - 1;
  }

  std::vector<std::size_t> lengths_;
  std::vector<std::size_t> received_;
  std::vector<std::size_t> offsets_;
  std::unique_ptr<device_side> device_;
  area<T> areas_[2];
};

}  // namespace perf
