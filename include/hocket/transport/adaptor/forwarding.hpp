// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Base classes of adaptors: endpoints and a domain that forward every call to the wrapped ones. An adaptor derives
/// from the endpoints, and hides the members that it changes.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/operation_event.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace adaptor {

/// Endpoints that poll operations through a callback: those of simulated ranks.
template <class Endpoints>
concept attachable =
    requires(Endpoints& endpoints, void* owner, transport::poll_function poll) { endpoints.attach(owner, poll); };

template <class Endpoints>
class forwarding_endpoints {
 public:
  static constexpr bool shares_address_space = Endpoints::shares_address_space;
  static constexpr bool receives_in_place = Endpoints::receives_in_place;
  static constexpr bool virtual_time = transport::keeps_virtual_time<Endpoints>;

  using sending = typename Endpoints::sending;
  using receiving = typename Endpoints::receiving;

  explicit forwarding_endpoints(std::unique_ptr<Endpoints> inner) noexcept : inner_(std::move(inner)) {}

  int rank() const noexcept { return inner_->rank(); }
  int size() const noexcept { return inner_->size(); }
  int ranks_per_core() const noexcept { return inner_->ranks_per_core(); }

  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                failure& fail) {
    return inner_->try_send(state, peer, id, data, bytes, fail);
  }
  bool drained(sending& state) { return inner_->drained(state); }
  const void* try_receive(receiving& state, int peer, transport::message_id id, void* buffer, std::size_t bytes,
                          failure& fail) {
    return inner_->try_receive(state, peer, id, buffer, bytes, fail);
  }
  void release(receiving& state) { inner_->release(state); }

  bool progress() { return inner_->progress(); }
  bool broken(failure& fail) { return inner_->broken(fail); }
  bool gone(int peer) { return inner_->gone(peer); }
  void discard() { inner_->discard(); }

  void post(int peer, std::span<const std::byte> payload) { inner_->post(peer, payload); }
  bool posted() { return inner_->posted(); }
  bool has_control_message() const { return inner_->has_control_message(); }
  bool fetch(transport::control_message& received) { return inner_->fetch(received); }

  std::byte* window_of(int peer) const { return inner_->window_of(peer); }
  bool windows_reachable() const { return inner_->windows_reachable(); }
  std::uint64_t publish(const void* data, std::size_t bytes) const { return inner_->publish(data, bytes); }
  const std::byte* resolve(int peer, std::uint64_t handle) const { return inner_->resolve(peer, handle); }

  // ── Optional members ─────────────────────────────────────────────────────────────────────────────────────────────

  static std::size_t received_bytes(const receiving& state) noexcept {
    return transport::received_bytes<Endpoints>(state);
  }

  void expedite() noexcept {
    if constexpr (transport::can_expedite<Endpoints>) inner_->expedite();
  }

  void call(std::uint32_t sequence) {
    if constexpr (transport::paces_steps<Endpoints>) inner_->call(sequence);
  }
  void on_operation(std::uint32_t sequence, const char* operation, const char* algorithm, std::size_t bytes)
    requires transport::observes_operations<Endpoints>
  {
    inner_->on_operation(sequence, operation, algorithm, bytes);
  }
  void enter(std::uint32_t sequence, unsigned lanes) {
    if constexpr (transport::paces_steps<Endpoints>) inner_->enter(sequence, lanes);
  }
  bool may_act(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    if constexpr (transport::paces_steps<Endpoints>) return inner_->may_act(sequence, lane, what, bytes);
    return true;
  }
  bool may_end(std::uint32_t sequence, unsigned lane) {
    if constexpr (transport::paces_steps<Endpoints>) return inner_->may_end(sequence, lane);
    return true;
  }
  void leave(std::uint32_t sequence) {
    if constexpr (transport::paces_steps<Endpoints>) inner_->leave(sequence);
  }

  std::string departure_reason(int peer) { return transport::departure_reason(*inner_, peer); }
  bool flag_reaches(int peer) { return transport::flag_reaches(*inner_, peer); }

  void attach(void* owner, transport::poll_function poll)
    requires attachable<Endpoints>
  {
    inner_->attach(owner, poll);
  }
  void note(failure cause)
    requires attachable<Endpoints>
  {
    inner_->note(std::move(cause));
  }

  // Whether the kernel copies decides on the algorithm, so ranks with and without an adaptor must agree.
  bool copies_any_memory() const noexcept
    requires transport::copies_memory<Endpoints>
  {
    return inner_->copies_any_memory();
  }
  std::uint64_t publish_unmapped(const void* data) const
    requires transport::copies_memory<Endpoints>
  {
    return inner_->publish_unmapped(data);
  }
  bool is_mapped(std::uint64_t handle) const
    requires transport::copies_memory<Endpoints>
  {
    return inner_->is_mapped(handle);
  }
  transport::memory_copy copy(int peer, std::uint64_t handle, std::size_t offset, void* to, std::size_t bytes)
    requires transport::copies_memory<Endpoints>
  {
    return inner_->copy(peer, handle, offset, to, bytes);
  }

  bool sleeps() const noexcept
    requires transport::can_sleep<Endpoints>
  {
    return inner_->sleeps();
  }
  bool may_sleep() const noexcept
    requires transport::can_sleep<Endpoints>
  {
    return inner_->may_sleep();
  }
  void announce_sleep()
    requires transport::can_sleep<Endpoints>
  {
    inner_->announce_sleep();
  }
  void sleep()
    requires transport::can_sleep<Endpoints>
  {
    inner_->sleep();
  }
  void stay_awake()
    requires transport::can_sleep<Endpoints>
  {
    inner_->stay_awake();
  }
  void wake(int peer) const
    requires transport::can_sleep<Endpoints>
  {
    inner_->wake(peer);
  }

  auto allocate(std::size_t bytes, const transport::exchange_function& exchange)
    requires requires(Endpoints& endpoints) { endpoints.allocate(bytes, exchange); }
  {
    return inner_->allocate(bytes, exchange);
  }

 protected:
  Endpoints& inner() noexcept { return *inner_; }
  const Endpoints& inner() const noexcept { return *inner_; }

 private:
  const std::unique_ptr<Endpoints> inner_;
};

/// A domain whose endpoint groups are `Endpoints`, which wrap those of `Domain`. All of them share a `Shared`.
template <class Domain, class Endpoints, class Shared>
class adapted_domain {
 public:
  using endpoints_type = Endpoints;
  static constexpr const char* name = Domain::name;

  adapted_domain(std::shared_ptr<Domain> inner, std::shared_ptr<Shared> shared) noexcept
      : inner_(std::move(inner)), shared_(std::move(shared)) {}

  int rank() const noexcept { return inner_->rank(); }
  int size() const noexcept { return inner_->size(); }
  transport::contexts& contexts() noexcept { return inner_->contexts(); }
  bool in_forked_child() const noexcept { return transport::in_forked_child(*inner_); }
  transport::link_costs costs() const noexcept { return inner_->costs(); }
  transport::world_costs agreed_costs() const noexcept { return transport::agreed_costs(*inner_); }
  /// Adaptors that only observe do not read messages, so they leave device memory to the wrapped domain.
  bool is_device_aware() const noexcept {
    return transport::observes_only<Endpoints> && transport::is_device_aware(*inner_);
  }
  const std::shared_ptr<Shared>& shared() const noexcept { return shared_; }

  static std::unique_ptr<Endpoints> open(const std::shared_ptr<adapted_domain>& self,
                                         const transport::open_parameters& how) {
    return std::make_unique<Endpoints>(Domain::open(self->inner_, how), how, self->shared_);
  }
  static std::shared_ptr<adapted_domain> renewed(const std::shared_ptr<adapted_domain>& self,
                                                 transport::open_parameters& how) {
    std::shared_ptr<Domain> next = Domain::renewed(self->inner_, how);
    if (next == self->inner_) return self;
    return std::make_shared<adapted_domain>(std::move(next), self->shared_);
  }

 private:
  const std::shared_ptr<Domain> inner_;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace adaptor
HOCKET_END_NAMESPACE
