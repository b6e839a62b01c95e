// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A store of any type, for start-up code that is compiled once.
#pragma once

#include <hocket/bootstrap/store.hpp>
#include <hocket/bootstrap/store_connection.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/wait_limit.hpp>

#include <concepts>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// A type-erased store, for `exchange`. Move-only.
class any_store {
 public:
  template <store Store>
    requires(!std::same_as<Store, any_store>)
  explicit any_store(Store place) : held_(std::make_unique<holder<Store>>(std::move(place))) {}

  /// See `exchange`, which this calls: it uses `gather` of the store inside if that has one.
  std::vector<blob> gather(std::string_view key, int rank, int ranks, byte_view mine, const wait_limit& limit) {
    return held_->gather(key, rank, ranks, mine, limit);
  }

  /// Returns the addresses by which this rank has reached the store; none if the store has no connections.
  store_connection connection() const noexcept { return held_->connection(); }
  /// Whether waits end at their limit. If not, a rank must not wait for ranks that may have failed.
  bool obeys_limits() const noexcept { return held_->obeys_limits(); }
  /// Ends the exchanges of a start-up that has succeeded here. Collective, if the store needs that; then raises the
  /// failure of a rank for which start-up has failed.
  void finish() { held_->finish(); }
  /// Informs the other ranks of a failure on this rank, if the store needs that.
  void report_failure(const failure& cause) noexcept { held_->report_failure(cause); }

 private:
  struct base {
    virtual ~base() = default;
    virtual std::vector<blob> gather(std::string_view key, int rank, int ranks, byte_view mine,
                                     const wait_limit& limit) = 0;
    virtual store_connection connection() const noexcept = 0;
    virtual bool obeys_limits() const noexcept = 0;
    virtual void finish() = 0;
    virtual void report_failure(const failure& cause) noexcept = 0;
  };

  template <typename Store>
  struct holder final : base {
    static constexpr bool ends = requires(Store& place) { place.finish(); };

    explicit holder(Store place) : place_(std::move(place)) {}
    std::vector<blob> gather(std::string_view key, int rank, int ranks, byte_view mine,
                             const wait_limit& limit) override {
      return exchange(place_, key, rank, ranks, mine, limit);
    }
    store_connection connection() const noexcept override {
      if constexpr (has_connection<Store>) return place_.connection();
      return {};
    }
    bool obeys_limits() const noexcept override { return !ends; }
    void finish() override {
      if constexpr (ends) place_.finish();
    }
    void report_failure(const failure& cause) noexcept override {
      if constexpr (ends) place_.report_failure(cause);
      static_cast<void>(cause);
    }
    Store place_;
  };

  std::unique_ptr<base> held_;
};

}  // namespace bootstrap

HOCKET_END_NAMESPACE
