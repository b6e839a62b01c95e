// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_side.hpp"

#include "usage_error.hpp"

#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace perf {

namespace {

namespace ipc = hocket::cuda_ipc;

void must(const hocket::failure& found) {
  if (found) throw std::runtime_error("on the device: " + found.message());
}

ipc::address address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

struct device_side::parts {
  ipc::driver driver;
  ipc::device_number device = 0;
  ipc::driver_context<ipc::driver> at;
  memory where = memory::device;
  // In this order because members are destroyed in reverse order: the stream must be destroyed last.
  ipc::owned_stream<ipc::driver> stream;
  std::vector<ipc::device_memory<ipc::driver>> in_device;
  std::vector<ipc::pinned_memory<ipc::driver>> pinned;
  std::vector<ipc::managed_memory<ipc::driver>> managed;

  void ask(const char* what, ipc::status returned) {
    if (returned != ipc::status::success) must(status_failure(driver, what, returned));
  }
};

void device_side::require(memory where) {
  if (where == memory::host) return;
  hocket::failure why;
  if (ipc::driver::load(why)) return;
  throw usage_error(std::string("--memory ") + to_string(where) + ": " + why.reason +
                    ". Run it on a machine where nvidia-smi lists a GPU, or measure host memory: --memory host");
}

device_side::device_side(memory where, int rank) : parts_(std::make_unique<parts>()) {
  hocket::failure why;
  std::optional<ipc::driver> loaded = ipc::driver::load(why);
  must(why);
  parts& own = *parts_;
  own.driver = *loaded;
  own.where = where;
  int devices = 0;
  own.ask("counting devices", own.driver.device_get_count(&devices));
  own.ask("finding a device", own.driver.device_get(&own.device, rank % devices));
  own.at.through = &own.driver;
  own.ask("entering a device's context", own.driver.device_primary_ctx_retain(&own.at.where, own.device));
  own.ask("entering a device's context", own.driver.ctx_set_current(own.at.where));
  must(ipc::owned_stream<ipc::driver>::make(own.at, own.stream));
}

/// Keeps the context until the program exits, because communicators have streams and pinned memory in it.
device_side::~device_side() = default;

void* device_side::allocate(std::size_t bytes) {
  parts& own = *parts_;
  switch (own.where) {
    case memory::device:
      must(ipc::device_memory<ipc::driver>::make(own.at, own.in_device.emplace_back(), bytes));
      return reinterpret_cast<void*>(own.in_device.back().get());
    case memory::managed:
      must(ipc::managed_memory<ipc::driver>::make(own.at, own.managed.emplace_back(), bytes));
      return reinterpret_cast<void*>(own.managed.back().get());
    case memory::pinned:
      must(ipc::pinned_memory<ipc::driver>::make(own.at, own.pinned.emplace_back(), bytes));
      return own.pinned.back().get();
    case memory::host: break;
  }
  throw std::logic_error("host memory is not allocated on a device");
}

void device_side::copy(void* to, const void* from, std::size_t bytes) {
  parts& own = *parts_;
  if (bytes == 0) return;
  own.ask("copying the vectors", own.driver.memcpy_async(address_of(to), address_of(from), bytes, own.stream.get()));
  wait();
}

void device_side::wait() {
  parts& own = *parts_;
  own.ask("waiting for the stream", own.driver.stream_synchronize(own.stream.get()));
}

CUstream_st* device_side::stream() const { return reinterpret_cast<CUstream_st*>(parts_->stream.get()); }

}  // namespace perf
