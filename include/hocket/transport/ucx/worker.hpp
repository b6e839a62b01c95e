// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One process's share of UCX: a context, and a worker that moves its messages.
///
/// Only one thread at a time may call UCX: the caller holds the worker's lock. Loads and stores in peers' memory need
/// no lock.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_size_limit.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/ucx/connection_way.hpp>
#include <hocket/transport/ucx/send_buffer.hpp>
#include <hocket/transport/ucx/status.hpp>
#include <hocket/transport/ucx/workarounds/tcp_settings.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>
#include <hocket/transport/ucx/workarounds/too_few_descriptors.hpp>
#include <hocket/transport/ucx/workarounds/version.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sched.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Held during a call into UCX, mostly tens of nanoseconds; cheaper than `std::mutex` without contention.
class spin_lock {
 public:
  bool try_lock() noexcept { return !taken_.exchange(true, std::memory_order_acquire); }
  void lock() noexcept {
    for (unsigned turn = 1; !try_lock(); ++turn) {
      turn % 64 == 0 ? static_cast<void>(::sched_yield()) : platform::pause();
    }
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

/// UCX's configuration and devices.
class context {
 public:
  /// `ranks` and `ranks_on_host` guide UCX's choice of transports. `watches_memory`: whether UCX may use shared memory
  /// for connections on which it must detect that the peer exits. Variables of the user take precedence over `how`.
  context(int ranks, int ranks_on_host, bool watches_memory, const connection_settings& how) {
    if (failure lacks = too_few_descriptors()) raise(std::move(lacks));
    const bool chosen = std::getenv("UCX_TLS") != nullptr;
    const connection_way way = chosen ? connection_way::network : how.way;
    failure no_files = too_small_files();
    if (no_files && (way == connection_way::memory || (chosen && may_use({"sm", "shm", "mm"}, {"posix"}))))
      raise(std::move(no_files));
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "UCX can't read its configuration (UCX_* variables)");
    // Otherwise UCX does not use shared memory for connections with error handlers.
    const bool shares_memory =
        watches_memory && (chosen || how.shares_memory) && may_use({"sm", "shm", "mm"}, {"posix", "sysv", "xpmem"});
    if (shares_memory) prefer(config, "MM_ERROR_HANDLING", "MM_ERROR_HANDLING", "y");
    const bool connects = way != connection_way::memory && may_use({"tcp"}, {}) && has_interface();
    if (connects) {
      for (const setting& each : tcp_settings()) prefer(config, each.variable, each.name, each.value);
      if (!how.families.empty())
        prefer(config, "TCP_AF_PRIO", at_least(17) ? "TCP_AF_PRIO" : "AF_PRIO", how.families.c_str());
      // UCX must send a piece (see piece_format.hpp) as a whole.
      prefer(config, "TCP_TX_SEG_SIZE", at_least(17) ? "TCP_TX_SEG_SIZE" : "TX_SEG_SIZE", "64k");
    }
    // UCX must send messages of up to one piece (see piece_format.hpp) immediately. By default it asks the peer first
    // from 20 KiB on over TCP, which takes two to three times as long, and is no faster between processes of one host.
    leaves_long_messages_ = std::getenv("UCX_RNDV_THRESH") != nullptr;
    if (!has_adapter()) prefer(config, "RNDV_THRESH", "RNDV_THRESH", "64k");
    // By default UCX takes 128 fragments of 4 MiB of device memory with the first long message, and retains them.
    prefer(config, "RNDV_FRAG_ALLOC_COUNT", "RNDV_FRAG_ALLOC_COUNT", "host:128,cuda:4");
    prefer(config, "KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", "200ms");
    // A process that is killed early leaves its System V segments behind forever; POSIX segments can replace them.
    prefer(config, "TLS", "TLS",
           way == connection_way::memory    ? "^sysv,tcp"
           : how.shares_memory && !no_files ? "^sysv"
                                            : "^sysv,posix");
    if (!chosen && !how.devices.empty()) prefer(config, "NET_DEVICES", "NET_DEVICES", how.devices.c_str());
    ucp_params_t wanted{};
    wanted.field_mask =
        UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_ESTIMATED_NUM_PPN;
    wanted.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AM;
    wanted.estimated_num_eps = static_cast<std::size_t>(ranks);
    wanted.estimated_num_ppn = static_cast<std::size_t>(ranks_on_host);
    const ucs_status_t status = ucp_init(&wanted, config, &handle_);
    ucp_config_release(config);
    check(status, "UCX can't start");
  }
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  ~context() {
    if (handle_ != nullptr) ucp_cleanup(handle_);
  }

  ucp_context_h get() const noexcept { return handle_; }
  /// Returns whether UCX can send CUDA device memory, that is, its CUDA modules are loaded and have found a driver.
  bool is_device_aware() const noexcept {
    ucp_context_attr_t asked{};
    asked.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    const std::uint64_t wanted = UCS_BIT(UCS_MEMORY_TYPE_CUDA) | UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED);
    return ucp_context_query(handle_, &asked) == UCS_OK && (asked.memory_types & wanted) == wanted;
  }
  /// Returns whether the user has set how UCX moves long messages (UCX_RNDV_THRESH).
  bool leaves_long_messages() const noexcept { return leaves_long_messages_; }
  /// Leaves the context open until the process ends.
  void keep() noexcept { handle_ = nullptr; }

 private:
  /// Sets `name` unless the user has set UCX_`variable`. No error if this version of UCX does not know `name`.
  static void prefer(ucp_config_t* config, const char* variable, const char* name, const char* value) {
    if (std::getenv((std::string("UCX_") + variable).c_str()) == nullptr) ucp_config_modify(config, name, value);
  }

  /// Returns false if UCX_TLS excludes these transports, given the names `all` of the group and `some` of its members.
  /// In that case UCX would warn about an unused setting.
  static bool may_use(std::initializer_list<const char*> all, std::initializer_list<const char*> some) {
    const char* const value = std::getenv("UCX_TLS");
    if (value == nullptr) return true;
    const bool excludes = *value == '^';
    const std::string list = ',' + std::string(value + (excludes ? 1 : 0)) + ',';
    const auto is_listed = [&](const char* each) { return list.find(',' + std::string(each) + ',') != list.npos; };
    if (excludes) return std::none_of(all.begin(), all.end(), is_listed);
    return is_listed("all") || std::any_of(all.begin(), all.end(), is_listed) ||
           std::any_of(some.begin(), some.end(), is_listed);
  }

  /// Does the same for UCX_NET_DEVICES: returns false if it names only ports of adapters ("mlx5_0:1").
  static bool has_interface() {
    const char* const value = std::getenv("UCX_NET_DEVICES");
    if (value == nullptr || *value == '^') return true;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::string_view device = rest.substr(0, rest.find(','));
      if (device.find(':') == std::string_view::npos) return true;
      rest.remove_prefix(std::min(rest.size(), device.size() + 1));
    }
    return false;
  }

  /// Returns a failure if this process can't make files as large as UCX's shared memory.
  static failure too_small_files() {
    constexpr std::size_t needed = 8 << 20;  // 4.1 MiB have been observed
    failure found = platform::exceeds_file_size_limit(needed);
    if (found) found.reason = hocket::detail::concat({"UCX shares files of up to ", needed, " bytes; ", found.reason});
    return found;
  }

  /// Returns whether this host may have adapters that move messages without the processor: UCX has thresholds for them.
  static bool has_adapter() noexcept { return ::access("/sys/class/infiniband", F_OK) == 0; }

  ucp_context_h handle_ = nullptr;
  bool leaves_long_messages_ = false;
};

/// Sends and receives. It has no thread and no wake-up: a waiting caller must call `progress`.
class worker {
 public:
  worker(int ranks, int ranks_on_host, bool watches_memory, const connection_settings& how)
      : context_(ranks, ranks_on_host, watches_memory, how) {
    ucp_worker_params_t wanted{};
    wanted.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    wanted.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    std::vector<tcp_address> others;
    for (const tcp_socket& each : listening_sockets()) others.push_back(each.local_address);
    const bool has_proc = ::access("/proc/self", F_OK) == 0;
    check(ucp_worker_create(context_.get(), &wanted, &handle_),
          has_proc ? "UCX can't create a worker" : "UCX can't create a worker, perhaps because /proc is not mounted");
    for (const tcp_socket& each : listening_sockets()) {
      if (contains(others, each.local_address)) continue;
      each.set_close_on_exec();
      listens_.push_back(each.local_address);
    }
  }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;
  ~worker() {
    if (kept_) {
      context_.keep();
      send_buffers_.keep();
    } else {
      ucp_worker_destroy(handle_);
    }
  }

  /// Leaves the worker and all its connections open until the process ends.
  void keep() noexcept { kept_ = true; }

  ucp_worker_h get() const noexcept { return handle_; }
  ucp_context_h library() const noexcept { return context_.get(); }
  bool leaves_long_messages() const noexcept { return context_.leaves_long_messages(); }
  bool is_device_aware() const noexcept { return context_.is_device_aware(); }
  const send_buffer_type& type_of_send_buffers() const noexcept { return send_buffers_; }
  spin_lock& lock() noexcept { return lock_; }

  /// Requires the lock. Returns true if a message moved.
  bool progress() noexcept { return ucp_worker_progress(handle_) != 0; }

  /// A random number, which distinguishes this start from all others.
  std::uint64_t nonce() const noexcept { return nonce_; }
  /// Addresses on which the worker listens for TCP connections.
  const std::vector<tcp_address>& listens() const noexcept { return listens_; }

  /// Address that other processes need to connect.
  std::vector<std::byte> address() const {
    ucp_address_t* address = nullptr;
    std::size_t size = 0;
    check(ucp_worker_get_address(handle_, &address, &size), "UCX can't get the address of its worker");
    const auto* const begin = reinterpret_cast<const std::byte*>(address);
    std::vector<std::byte> copy(begin, begin + size);
    ucp_worker_release_address(handle_, address);
    return copy;
  }

 private:
  context context_;
  send_buffer_type send_buffers_;
  ucp_worker_h handle_ = nullptr;
  bool kept_ = false;
  const std::uint64_t nonce_ = platform::random_bits<std::uint64_t>();
  std::vector<tcp_address> listens_;
  spin_lock lock_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
