// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A driver whose devices are host memory, for tests without a GPU. One `host_machine` represents the machine, and one
/// `host_driver` one of its processes; ranks are threads with one driver each.
///
/// An allocation is a memory file, and opening its handle maps it again: peers see each other's bytes at different
/// addresses, and reading a closed mapping crashes, as on a GPU. Operations that are undefined there, such as freeing
/// memory that is still open elsewhere, are counted. Streams run their work immediately; or in a thread for each stream
/// (`queue_streams`); or, if they are lazy (`be_lazy`), one task of a random stream at each query.
///
/// Any call can be made to fail: see `inject`.
#pragma once

#include "transport/cuda_ipc/host_queue.hpp"

#include <hocket/transport/cuda_ipc/driver_types.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace hocket_test {

namespace ipc = hocket::cuda_ipc;
using ipc::status;

/// The state that all processes of the machine share.
struct host_machine {
  struct allocation {
    int owner = 0;
    int device = 0;
    int file = -1;
    std::size_t size = 0;
    std::uint64_t generation = 0;
    std::uint64_t serial = 0;
    bool capable = true;
    int opened = 0;  ///< mappings of other processes
  };

  explicit host_machine(int devices_there = 1) : devices(devices_there) {}
  ~host_machine() {
    for (auto& [base, each] : allocations) {
      ::munmap(reinterpret_cast<void*>(base), each.size);
      ::close(each.file);
    }
  }
  host_machine(const host_machine&) = delete;
  host_machine& operator=(const host_machine&) = delete;

  int allocated() {
    const std::lock_guard lock(mutex);
    return static_cast<int>(allocations.size());
  }

  std::mutex mutex;
  const int devices;
  std::map<ipc::address, allocation> allocations;  ///< by their owners' addresses, which are all different
  std::uint64_t serials = 0;
  int freed_while_open = 0;
  int freed_while_used = 0;      ///< or closed, while a queue had tasks that use it
  std::set<host_queue*> queues;  ///< of all processes
  bool peer_access = true;       ///< between devices
};

class host_driver {
 public:
  host_driver(host_machine& on, int process, int device = 0) : machine_(on), process_(process), device_(device) {
    current_ = context_of(device);
  }
  host_driver(const host_driver&) = delete;
  host_driver& operator=(const host_driver&) = delete;
  ~host_driver() {
    // Releases abandoned resources, as at the end of the process: first running streams, then their memory.
    for (const auto& each : queues_) forget(*each);
    queues_.clear();
    for (auto& [at, each] : opened_) ::munmap(reinterpret_cast<void*>(at), each.size);
    for (const auto& [at, size] : pinned_) std::free(at);
  }

  /// Process numbers are those of the machine, so that threads can stand for processes.
  ipc::process_mark mark() const { return {7, 8, 9, process_}; }

  // ---- faults ----
  /// The call with this number, 0 or more, returns `code`. A call that releases a resource still does so, because a
  /// driver also returns earlier errors.
  void inject(int call, status code) {
    lasts_ = false;
    injected_at_ = call;
    injected_ = code;
    calls_ = 0;
    failed_last_ = false;
  }
  /// The same for all calls from that one on, until `forget_faults`: the context is broken.
  void break_at(int call, status code) {
    inject(call, code);
    lasts_ = true;
  }
  void forget_faults() { inject(-1, status::success); }
  bool has_failed() const { return calls_ > injected_at_ && injected_at_ >= 0; }
  const char* failed_call() const { return failed_call_; }
  /// Returns the call that followed the failed one; empty if there was none.
  const char* call_after() const { return call_after_; }
  /// Makes streams lazy: see above.
  void be_lazy(unsigned seed) {
    lazy_ = true;
    chance_.seed(seed);
  }
  /// Adds work of the test to a stream.
  void queue(ipc::stream_handle on, std::function<void()> work) {
    perform(on, {}, [work = std::move(work)] {
      work();
      return true;
    });
  }
  /// Runs all tasks of lazy streams that can complete.
  void finish_streams() {
    while (do_one()) {}
  }
  /// Marks the allocation as managed memory.
  void manage(ipc::address base) { managed_.insert(base); }
  void capture(bool is) { capturing_ = is; }
  /// After this number of copies, the work of streams does not end.
  void stop_streams(int copies = 0) { copies_that_end_ = copies; }
  /// Opening peers' memory succeeds, but copies from it return other bytes, or copies to it are lost.
  void spoil_reads() { spoils_reads_ = true; }
  void lose_writes() { loses_writes_ = true; }
  /// Makes streams queues with a thread each, in which waits block. Must be called before the first stream is made.
  void queue_streams() { queued_ = true; }
  void has_context(bool has) { current_ = has ? context_of(device_) : nullptr; }
  /// The next allocations have no handles.
  void pool_memory(bool is) { pool_ = is; }
  /// The next allocation has this address.
  void reuse(ipc::address where) { reuse_ = where; }

  // ---- counters ----
  int opens = 0;   ///< handles opened
  int closes = 0;  ///< and closed
  int device() const { return device_; }
  int pinned() const { return static_cast<int>(pinned_.size()); }
  int streams() const { return static_cast<int>(streams_.size()); }
  int events() const { return static_cast<int>(events_.size()); }
  int calls() const { return calls_; }
  int waits_without_flush = 0;   ///< of streams, for words
  int destroyed_while_busy = 0;  ///< streams
  int copies_of_freed = 0;       ///< from or to pinned memory that was freed before they were complete
  int open_now() const { return static_cast<int>(opened_.size()); }
  std::vector<bool> copied_to_host;  ///< for each copy on a stream, in order
  int bad_closes = 0;
  int closed_without_context = 0;

  // ---- the driver ----
  status init(unsigned) { return begin("init"); }
  status driver_get_version(int* result) { return give("driver_get_version", result, 13000); }
  status get_error_name(status, const char**) { return status::invalid_value; }
  status get_error_string(status, const char**) { return status::invalid_value; }
  status device_get_count(int* result) { return give("device_get_count", result, machine_.devices); }
  status device_get(ipc::device_number* result, int ordinal) {
    return ordinal < machine_.devices ? give("device_get", result, ordinal) : status::invalid_device;
  }
  status device_get_uuid(ipc::uuid* result, ipc::device_number device) {
    return give("device_get_uuid", result, uuid_of(device));
  }
  status device_get_attribute(int* result, ipc::device_attribute which, ipc::device_number) {
    return give("device_get_attribute", result, which == lacks_ ? 0 : 1);
  }
  status device_primary_ctx_retain(ipc::context_handle* result, ipc::device_number device) {
    return give("device_primary_ctx_retain", result, context_of(device));
  }
  status ctx_get_current(ipc::context_handle* result) { return give("ctx_get_current", result, current_); }
  status ctx_set_current(ipc::context_handle what) {
    return give(what == context_of(device_) ? "ctx_set_current" : "ctx_set_current, back", &current_, what);
  }
  status ctx_get_device(ipc::device_number* result) { return give("ctx_get_device", result, device_); }
  status ctx_enable_peer_access(ipc::context_handle, unsigned) {
    if (const status now = begin("ctx_enable_peer_access"); now != status::success) return now;
    if (!machine_.peer_access) return status::peer_access_unsupported;
    return std::exchange(peers_enabled_, true) ? status::peer_access_already_enabled : status::success;
  }

  status mem_alloc(ipc::address* result, std::size_t size) {
    if (const status now = begin("mem_alloc"); now != status::success) return now;
    const int file = ::memfd_create("device", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) return status::out_of_memory;
    const std::lock_guard lock(machine_.mutex);
    const ipc::address at = map(file, size, std::exchange(reuse_, 0));
    machine_.allocations[at] = {process_, device_, file, size, ++generations_, ++machine_.serials, !pool_, 0};
    *result = at;
    return status::success;
  }
  status mem_free(ipc::address at) {
    const status now = begin("mem_free");
    const std::lock_guard lock(machine_.mutex);
    const auto found = machine_.allocations.find(at);
    if (found == machine_.allocations.end() || found->second.owner != process_) return status::invalid_value;
    machine_.freed_while_open += found->second.opened;
    count_uses({at, found->second.size});
    ::munmap(reinterpret_cast<void*>(at), found->second.size);
    ::close(found->second.file);
    machine_.allocations.erase(found);
    managed_.erase(at);
    return now;
  }
  status mem_host_alloc(void** result, std::size_t size, unsigned) {
    if (const status now = begin("mem_host_alloc"); now != status::success) return now;
    *result = std::malloc(size);
    pinned_[*result] = size;
    return status::success;
  }
  status mem_free_host(void* at) {
    const status now = begin("mem_free_host");
    const auto found = pinned_.find(at);
    if (found == pinned_.end()) return status::invalid_value;
    const host_queue::range memory{reinterpret_cast<ipc::address>(at), found->second};
    for (const auto& [on, work] : streams_) {
      for (const host_queue::task& each : work) copies_of_freed += each.uses(memory) ? 1 : 0;
    }
    pinned_.erase(found);
    std::free(at);
    return now;
  }
  status mem_get_address_range(ipc::address* base, std::size_t* size, ipc::address at) {
    if (const status now = begin("mem_get_address_range"); now != status::success) return now;
    const std::lock_guard lock(machine_.mutex);
    const auto* const found = allocation_of(at, base);
    if (found != nullptr) *size = found->size;
    return found == nullptr ? status::not_found : status::success;
  }
  status pointer_get_attribute(void* result, ipc::pointer_attribute which, ipc::address at) {
    if (const status now = begin(name_for(which)); now != status::success) return now;
    const std::lock_guard lock(machine_.mutex);
    ipc::address base = 0;
    const auto* const found = allocation_of(at, &base);
    if (found == nullptr && which == ipc::pointer_attribute::memory_type && is_pinned(at)) return write(result, 1U);
    if (found == nullptr) return status::invalid_value;
    switch (which) {
      case ipc::pointer_attribute::memory_type: return write(result, 2U);
      case ipc::pointer_attribute::buffer_id: return write(result, found->generation);
      case ipc::pointer_attribute::is_managed: return write(result, std::uint8_t{managed_.count(base) != 0});
      case ipc::pointer_attribute::device_ordinal: return write(result, found->device);
      case ipc::pointer_attribute::ipc_capable: return write(result, std::uint8_t{found->capable});
      default: return status::invalid_value;
    }
  }
  /// Unknown memory is not an error, as in CUDA.
  status pointer_get_attributes(unsigned count, ipc::pointer_attribute* which, void** results, ipc::address at) {
    if (const status now = begin("pointer_get_attributes"); now != status::success) return now;
    if (current_ == nullptr) return status::invalid_context;
    const int calls = calls_;
    for (unsigned i = 0; i < count; ++i) {
      calls_ = injected_at_ + 1;  // counts as one call
      if (pointer_get_attribute(results[i], which[i], at) != status::success) write(results[i], std::uint8_t{0});
    }
    calls_ = calls;
    return status::success;
  }
  status memcpy_async(ipc::address to, ipc::address from, std::size_t size, ipc::stream_handle on) {
    if (const status now = begin("memcpy_async"); now != status::success) return now;
    ++copies_;
    const bool spoiled = (spoils_reads_ && opened_at(from)) || (loses_writes_ && opened_at(to));
    if (spoiled) return status::success;
    copied_to_host.push_back(is_pinned(to));
    return perform(on, {{to, size}, {from, size}}, [to, from, size] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size);
      return true;
    });
  }

  status ipc_get_mem_handle(ipc::ipc_memory_handle* result, ipc::address base) {
    if (const status now = begin("ipc_get_mem_handle"); now != status::success) return now;
    const std::lock_guard lock(machine_.mutex);
    const auto found = machine_.allocations.find(base);
    if (found == machine_.allocations.end() || !found->second.capable) return status::invalid_value;
    std::memcpy(result->bytes.data(), &found->second.serial, sizeof found->second.serial);
    return status::success;
  }
  status ipc_open_mem_handle(ipc::address* result, ipc::ipc_memory_handle handle, unsigned flags) {
    if (const status now = begin("ipc_open_mem_handle"); now != status::success) return now;
    if (flags != ipc::open_with_peer_access) return status::invalid_value;
    if (current_ == nullptr) return status::invalid_context;
    std::uint64_t serial = 0;
    std::memcpy(&serial, handle.bytes.data(), sizeof serial);
    const std::lock_guard lock(machine_.mutex);
    for (auto& [base, each] : machine_.allocations) {
      if (each.serial != serial) continue;
      if (each.owner == process_) return status::invalid_context;  // as in CUDA, a process can't open its own memory
      *result = map(each.file, each.size, 0);
      opened_[*result] = {serial, each.size};
      ++each.opened;
      ++opens;
      return status::success;
    }
    return status::map_failed;
  }
  status ipc_close_mem_handle(ipc::address at) {
    const status now = begin("ipc_close_mem_handle");
    if (current_ == nullptr) ++closed_without_context;
    const std::lock_guard lock(machine_.mutex);
    const auto found = opened_.find(at);
    if (found == opened_.end()) {
      ++bad_closes;
      return status::invalid_value;
    }
    for (auto& [base, each] : machine_.allocations) {
      if (each.serial == found->second.serial) --each.opened;
    }
    count_uses({at, found->second.size});
    ::munmap(reinterpret_cast<void*>(at), found->second.size);
    opened_.erase(found);
    ++closes;
    return now;
  }

  status stream_create(ipc::stream_handle* result, unsigned flags) {
    if (const status now = begin("stream_create"); now != status::success) return now;
    *result = queued_ ? make_queue() : reinterpret_cast<ipc::stream_handle>(++streams_made_);
    streams_[*result] = {};
    stream_flags_[*result] = flags;
    return status::success;
  }
  status stream_get_flags(ipc::stream_handle what, unsigned* result) {
    if (captured(what)) return static_cast<status>(900);  // as in CUDA's driver
    return give("stream_get_flags", result, stream_flags_[what]);
  }
  status stream_destroy(ipc::stream_handle what) {
    const status now = begin("stream_destroy");
    if (streams_.erase(what) == 0) return status::invalid_handle;
    if (queued_ && host_queue::of(what).busy()) {
      ++destroyed_while_busy;  // it continues until its process ends
    } else if (queued_) {
      forget(host_queue::of(what));
      std::erase_if(queues_, [&](const auto& each) { return each->handle() == what; });
    }
    return now;
  }
  status stream_query(ipc::stream_handle on) {
    // The number of queries that return not_ready depends on time, so that only the last one is counted.
    if (queued_ && !breaks() && host_queue::of(on).busy()) return status::not_ready;
    const status now = begin("stream_query");
    if (queued_) return now == status::success && host_queue::of(on).busy() ? status::not_ready : now;
    do_one();
    const auto found = streams_.find(on);
    if (now == status::success && found != streams_.end() && !found->second.empty()) return status::not_ready;
    return now == status::success && copies_that_end_ >= 0 && copies_ > copies_that_end_ ? status::not_ready : now;
  }
  status stream_synchronize(ipc::stream_handle) {
    finish_streams();
    return begin("stream_synchronize");
  }
  status stream_get_ctx(ipc::stream_handle, ipc::context_handle* result) {
    return give("stream_get_ctx", result, context_of(device_));
  }
  status stream_write_value_32(ipc::stream_handle on, ipc::address at, std::uint32_t value, unsigned) {
    const status now = begin("stream_write_value_32");
    return now == status::success ? queue_write(on, at, value) : now;
  }
  /// A wait for a value that is not there yet blocks a queue; other streams stop for good.
  status stream_wait_value_32(ipc::stream_handle on, ipc::address at, std::uint32_t value, unsigned flags) {
    const status now = begin("stream_wait_value_32");
    return now == status::success ? queue_wait(on, at, value, flags) : now;
  }
  status stream_batch_mem_op(ipc::stream_handle on, unsigned count, ipc::word_operation* all, unsigned) {
    if (const status now = begin("stream_batch_mem_op"); now != status::success) return now;
    if (count > 255) return status::invalid_value;  // as in CUDA
    for (unsigned i = 0; i < count; ++i) {
      const auto value = static_cast<std::uint32_t>(all[i].value);
      if (all[i].what == ipc::word_wait_32) {
        const status now = queue_wait(on, all[i].at, value, all[i].flags);
        if (now != status::success) return now;
      } else if (all[i].what == ipc::word_write_32) {
        queue_write(on, all[i].at, value);
      } else {
        return status::invalid_value;
      }
    }
    return status::success;
  }
  status thread_exchange_stream_capture_mode(ipc::capture_mode* mode) {
    const std::string_view before = last_call_;  // these precede it when a context is entered
    const bool enters = before == "ctx_get_current" || before == "ctx_set_current";
    const status now =
        begin(enters ? "thread_exchange_stream_capture_mode" : "thread_exchange_stream_capture_mode, back");
    if (now == status::success) std::swap(*mode, mode_);
    return now;
  }
  status module_get_loading_mode(ipc::loading_mode* result) {
    return give("module_get_loading_mode", result, loading_);
  }
  status stream_is_capturing(ipc::stream_handle on, ipc::capture_status* result) {
    return give("stream_is_capturing", result, captured(on) ? ipc::capture_status::active : ipc::capture_status::none);
  }
  status stream_wait_event(ipc::stream_handle on, ipc::event_handle which, unsigned) {
    if (const status now = begin("stream_wait_event"); now != status::success) return now;
    const auto found = events_.find(which);
    if (found == events_.end()) return status::invalid_handle;
    if (queued_ && host_queue::of(on).capturing())
      return static_cast<status>(905);  // the event is not part of this graph
    const recorded done = found->second;
    return perform(on, {}, [done] { return done->load(std::memory_order_acquire); });
  }
  status event_create(ipc::event_handle* result, unsigned) {
    if (const status now = begin("event_create"); now != status::success) return now;
    *result = reinterpret_cast<ipc::event_handle>(++events_made_);
    events_[*result] = std::make_shared<std::atomic<bool>>(true);
    return status::success;
  }
  status event_destroy(ipc::event_handle which) {
    const status now = begin("event_destroy");
    return events_.erase(which) == 0 ? status::invalid_handle : now;
  }
  status event_record(ipc::event_handle which, ipc::stream_handle on) {
    if (const status now = begin("event_record"); now != status::success) return now;
    const auto found = events_.find(which);
    if (found == events_.end()) return status::invalid_handle;
    const recorded done = std::make_shared<std::atomic<bool>>(false);
    found->second = done;
    return perform(on, {}, [done] {
      done->store(true, std::memory_order_release);
      return true;
    });
  }
  status event_query(ipc::event_handle which) {
    const auto found = events_.find(which);
    if (found == events_.end()) return status::invalid_handle;
    if (queued_ && !breaks() && !found->second->load(std::memory_order_acquire)) return status::not_ready;
    if (const status now = begin("event_query"); now != status::success) return now;
    do_one();
    return found->second->load(std::memory_order_acquire) ? status::success : status::not_ready;
  }
  /// Kernels are loaded when they are first launched.
  void load_late() { loading_ = ipc::loading_mode::lazy; }
  /// Returns the capture mode of the thread.
  ipc::capture_mode mode() const { return mode_; }
  /// Writes of streams are lost.
  void lose_words() { loses_words_ = true; }
  /// Writes of streams write a word that is larger by one.
  void spoil_words() { spoils_words_ = true; }
  /// The device lacks this attribute.
  void lack(ipc::device_attribute what) { lacks_ = what; }

 private:
  struct mapping {
    std::uint64_t serial = 0;
    std::size_t size = 0;
  };

  static ipc::context_handle context_of(int device) {
    return reinterpret_cast<ipc::context_handle>(static_cast<std::uintptr_t>(device) + 1);
  }
  static const char* name_for(ipc::pointer_attribute which) {
    switch (which) {
      case ipc::pointer_attribute::memory_type: return "pointer_get_attribute, of its kind";
      case ipc::pointer_attribute::buffer_id: return "pointer_get_attribute, of its generation";
      default: return "pointer_get_attribute";
    }
  }
  static ipc::uuid uuid_of(int device) {
    ipc::uuid result;
    result.bytes.fill(static_cast<unsigned char>(device + 1));
    return result;
  }
  static ipc::address map(int file, std::size_t size, ipc::address where) {
    const int fixed = where != 0 ? MAP_FIXED_NOREPLACE : 0;
    void* const at = ::mmap(reinterpret_cast<void*>(where), size, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, file, 0);
    if (at == MAP_FAILED) std::abort();
    return reinterpret_cast<ipc::address>(at);
  }
  template <class Value>
  static status write(void* to, Value value) {
    std::memcpy(to, &value, sizeof value);
    return status::success;
  }

  using recorded = std::shared_ptr<std::atomic<bool>>;

  /// Runs `attempt` now, or when the stream reaches it.
  template <class Attempt>
  status perform(ipc::stream_handle on, std::vector<host_queue::range> touches, Attempt attempt) {
    const auto found = streams_.find(on);
    if (queued_) {
      host_queue::of(on).push(std::move(attempt), std::move(touches));
    } else if (lazy_ && found != streams_.end()) {
      found->second.push_back({std::move(attempt), std::move(touches)});
    } else if (!attempt()) {
      copies_that_end_ = 0;
    }
    return status::success;
  }
  /// Runs the first task of one lazy stream that can complete it.
  bool do_one() {
    if (copies_that_end_ >= 0 && copies_ > copies_that_end_) return false;
    std::vector<std::deque<host_queue::task>*> waiting;
    for (auto& [on, work] : streams_) {
      if (!work.empty()) waiting.push_back(&work);
    }
    std::shuffle(waiting.begin(), waiting.end(), chance_);
    for (auto* const work : waiting) {
      const auto attempt = work->front().attempt;
      if (!attempt()) continue;
      work->pop_front();
      return true;
    }
    return false;
  }
  bool is_pinned(ipc::address at) const {
    const auto after = pinned_.upper_bound(reinterpret_cast<void*>(at));
    if (after == pinned_.begin()) return false;
    const auto& [base, size] = *std::prev(after);
    return at - reinterpret_cast<ipc::address>(base) < size;
  }
  ipc::stream_handle make_queue() {
    queues_.push_back(std::make_unique<host_queue>());
    const std::lock_guard lock(machine_.mutex);
    machine_.queues.insert(queues_.back().get());
    return queues_.back()->handle();
  }
  void forget(host_queue& which) {
    const std::lock_guard lock(machine_.mutex);
    machine_.queues.erase(&which);
  }
  /// The caller must hold the machine's lock.
  void count_uses(const host_queue::range& memory) {
    for (host_queue* const each : machine_.queues) machine_.freed_while_used += each->uses(memory) ? 1 : 0;
  }
  status queue_write(ipc::stream_handle on, ipc::address at, std::uint32_t value) {
    if (loses_words_) return status::success;
    if (spoils_words_) ++value;
    return perform(on, {{at, sizeof value}}, [at, value] {
      std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).store(value, std::memory_order_release);
      return true;
    });
  }
  status queue_wait(ipc::stream_handle on, ipc::address at, std::uint32_t value, unsigned flags) {
    const bool can_flush = lacks_ != ipc::device_attribute::flush_remote_writes;
    const bool flushes = (flags & ipc::wait_then_flush) != 0;
    if (flushes && !can_flush) return status::not_supported;
    if (!flushes) ++waits_without_flush;
    return perform(on, {{at, sizeof value}}, [at, value, flags] {
      const auto seen = std::atomic_ref(*reinterpret_cast<std::uint32_t*>(at)).load(std::memory_order_acquire);
      return (flags & ~ipc::wait_then_flush) == ipc::wait_until_equal ? seen == value
                                                                      : static_cast<std::int32_t>(seen - value) >= 0;
    });
  }
  /// Returns whether all calls from some call on fail.
  bool breaks() const { return lasts_ && injected_at_ >= 0; }
  status begin(const char* name) {
    const int call = calls_++;
    last_call_ = name;
    if (std::exchange(failed_last_, call == injected_at_)) call_after_ = name;
    if (call != injected_at_ && !(lasts_ && call > injected_at_)) return status::success;
    if (call == injected_at_) {
      failed_call_ = name;
      call_after_ = "";
    }
    return injected_;
  }
  template <class Value>
  status give(const char* name, Value* to, Value value) {
    const status now = begin(name);
    if (now == status::success) *to = value;
    return now;
  }
  bool opened_at(ipc::address at) const {
    const auto after = opened_.upper_bound(at);
    if (after == opened_.begin()) return false;
    const auto& [base, each] = *std::prev(after);
    return at - base < each.size;
  }
  const host_machine::allocation* allocation_of(ipc::address at, ipc::address* base) const {
    const auto after = machine_.allocations.upper_bound(at);
    if (after == machine_.allocations.begin()) return nullptr;
    const auto& [begin, each] = *std::prev(after);
    if (at - begin >= each.size || each.owner != process_) return nullptr;
    *base = begin;
    return &each;
  }

  bool captured(ipc::stream_handle what) { return capturing_ || (queued_ && host_queue::of(what).capturing()); }

  host_machine& machine_;
  const int process_;
  const int device_;
  ipc::context_handle current_ = nullptr;
  std::map<ipc::address, mapping> opened_;
  std::map<void*, std::size_t> pinned_;
  std::map<ipc::stream_handle, std::deque<host_queue::task>> streams_;  ///< with the tasks of lazy ones
  std::set<ipc::address> managed_;
  bool lazy_ = false;
  bool capturing_ = false;
  std::mt19937 chance_;
  std::uintptr_t streams_made_ = 0;
  bool queued_ = false;
  std::vector<std::unique_ptr<host_queue>> queues_;
  std::map<ipc::event_handle, recorded> events_;
  std::uintptr_t events_made_ = 0;
  std::uint64_t generations_ = 0;
  ipc::address reuse_ = 0;
  bool pool_ = false;
  bool loses_words_ = false;
  bool spoils_words_ = false;
  bool spoils_reads_ = false;
  bool loses_writes_ = false;
  ipc::device_attribute lacks_{};
  ipc::capture_mode mode_ = ipc::capture_mode::of_all;
  ipc::loading_mode loading_ = ipc::loading_mode::eager;
  std::map<ipc::stream_handle, unsigned> stream_flags_;
  int copies_that_end_ = -1;
  bool peers_enabled_ = false;
  int copies_ = 0;
  int calls_ = 0;
  int injected_at_ = -1;
  bool lasts_ = false;
  status injected_ = status::success;
  const char* failed_call_ = "";
  const char* last_call_ = "";
  const char* call_after_ = "";
  bool failed_last_ = false;
};

/// Returns every code of CUDA 13.0, and one that does not exist.
inline std::set<status> every_code() {
  std::set<status> all;
  const auto from_to = [&](int first, int last) {
    for (int code = first; code <= last; ++code) all.insert(static_cast<status>(code));
  };
  from_to(1, 8);
  for (const int code : {34, 36, 46, 500, 600, 908, 999, 12345}) all.insert(static_cast<status>(code));
  from_to(100, 102);
  from_to(200, 202);
  from_to(205, 226);
  from_to(300, 304);
  from_to(400, 402);
  from_to(700, 721);
  from_to(800, 812);
  from_to(900, 916);
  return all;
}

}  // namespace hocket_test
