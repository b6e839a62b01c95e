// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What saving and loading need of a communicator, without its transport as a template parameter: the exchange of blobs
/// between rank 0 and the others, and of bytes between all.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/process_identity.hpp>
#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/collective/scatter_v.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/group/split.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {
namespace detail {

/// Functions are collective; they raise the errors of the communicator.
class rank_group {
 public:
  rank_group() = default;
  rank_group(const rank_group&) = delete;
  rank_group& operator=(const rank_group&) = delete;
  virtual ~rank_group() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Returns the blobs of all ranks on rank 0, and none on the others.
  virtual std::vector<bootstrap::blob> gather(const bootstrap::blob& mine) = 0;
  /// Returns this rank's one of the blobs that rank 0 passes.
  virtual bootstrap::blob scatter(const std::vector<bootstrap::blob>& of_ranks) = 0;
  /// Returns the blob that rank 0 passes.
  virtual bootstrap::blob broadcast(const bootstrap::blob& of_first) = 0;
  /// Sends `sent[r]` bytes of `out` to rank r, in the order of ranks, and receives `received[r]` from it.
  virtual void all_to_all(std::span<const std::byte> out, std::span<const std::size_t> sent, std::span<std::byte> in,
                          std::span<const std::size_t> received) = 0;
  /// Returns the ranks of this rank's host, in their order.
  virtual std::unique_ptr<rank_group> of_host() = 0;
  /// Returns another group of the same ranks, which another thread may use.
  virtual std::unique_ptr<rank_group> copy() = 0;
};

template <class Domain>
class rank_group_over final : public rank_group {
 public:
  explicit rank_group_over(communicator<Domain> comm) : comm_(std::move(comm)) {}

  int rank() const noexcept override { return comm_.rank(); }
  int size() const noexcept override { return comm_.size(); }

  std::vector<bootstrap::blob> gather(const bootstrap::blob& mine) override {
    const std::size_t own = mine.size();
    std::vector<std::size_t> sizes(rank() == 0 ? ranks() : 0);
    hocket::gather(comm_, std::span(&own, 1), std::span(sizes), root{0});
    sizes.resize(ranks());
    hocket::broadcast(comm_, std::span(sizes), root{0});
    bootstrap::blob all(rank() == 0 ? std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) : 0);
    hocket::gather_v(comm_, std::span(mine), std::span(all), counts{sizes}, root{0});
    std::vector<bootstrap::blob> result;
    auto at = all.begin();
    for (std::size_t r = 0; rank() == 0 && r < ranks(); ++r) {
      result.emplace_back(at, at + static_cast<std::ptrdiff_t>(sizes[r]));
      at += static_cast<std::ptrdiff_t>(sizes[r]);
    }
    return result;
  }

  bootstrap::blob scatter(const std::vector<bootstrap::blob>& of_ranks) override {
    std::vector<std::size_t> sizes(ranks());
    bootstrap::blob all;
    for (std::size_t r = 0; rank() == 0 && r < ranks(); ++r) {
      sizes[r] = of_ranks[r].size();
      bootstrap::detail::append_bytes(all, of_ranks[r]);
    }
    hocket::broadcast(comm_, std::span(sizes), root{0});
    bootstrap::blob mine(sizes[static_cast<std::size_t>(rank())]);
    hocket::scatter_v(comm_, std::span(std::as_const(all)), std::span(mine), counts{sizes}, root{0});
    return mine;
  }

  bootstrap::blob broadcast(const bootstrap::blob& of_first) override {
    std::size_t size = of_first.size();
    hocket::broadcast(comm_, std::span(&size, 1), root{0});
    bootstrap::blob result = rank() == 0 ? of_first : bootstrap::blob(size);
    hocket::broadcast(comm_, std::span(result), root{0});
    return result;
  }

  void all_to_all(std::span<const std::byte> out, std::span<const std::size_t> sent, std::span<std::byte> in,
                  std::span<const std::size_t> received) override {
    hocket::all_to_all_v(comm_, out, in, send_counts{sent}, receive_counts{received});
  }

  std::unique_ptr<rank_group> of_host() override {
    constexpr std::size_t name_bytes = sizeof(bootstrap::process_identity::host);
    const bootstrap::process_identity own = bootstrap::own_identity();
    std::vector<char> all(ranks() * name_bytes);
    hocket::all_gather(comm_, std::span(own.host), std::span(all));
    int first = 0;
    while (std::memcmp(all.data() + static_cast<std::size_t>(first) * name_bytes, own.host, name_bytes) != 0) ++first;
    return std::make_unique<rank_group_over>(hocket::split(comm_, color{first}, key{rank()}));
  }
  std::unique_ptr<rank_group> copy() override {
    return std::make_unique<rank_group_over>(hocket::split(comm_, color{0}, key{rank()}));
  }

 private:
  std::size_t ranks() const noexcept { return static_cast<std::size_t>(comm_.size()); }

  communicator<Domain> comm_;
};

}  // namespace detail
}  // namespace checkpoint
HOCKET_END_NAMESPACE
