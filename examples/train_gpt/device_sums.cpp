// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device_sums.hpp"

#include <hocket/collective/device/staged.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/resources.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpt {

namespace {

namespace ipc = hocket::cuda_ipc;

using device_memory = ipc::device_memory<ipc::driver>;

void must(const hocket::failure& found) {
  if (found) throw std::runtime_error("--device cuda: " + found.message());
}

}  // namespace

struct device_sums::parts {
  ipc::driver driver;
  ipc::driver_context<ipc::driver> at;
  // In this order because members are destroyed in reverse order.
  ipc::owned_stream<ipc::driver> stream;
  std::multimap<std::size_t, device_memory> unused;  ///< by size in bytes

  void ask(const char* what, ipc::status returned) const {
    if (returned != ipc::status::success) must(ipc::status_failure(driver, what, returned));
  }

  void copy(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
    if (bytes != 0) ask("copying gradients", driver.memcpy_async(to, from, bytes, stream.get()));
  }
  void wait() { ask("waiting for gradients", driver.stream_synchronize(stream.get())); }

  /// Reuses allocations, because buckets have the same sizes in every step.
  device_memory take(std::size_t bytes) {
    if (auto found = unused.extract(bytes)) return std::move(found.mapped());
    device_memory made;
    must(device_memory::make(at, made, std::max<std::size_t>(bytes, 1)));
    return made;
  }

  hocket::cuda::stream_ref order() const { return reinterpret_cast<CUstream_st*>(stream.get()); }
};

class bucket_sum::on_device {
 public:
  on_device(device_sums::parts& where, std::size_t bytes_in, std::size_t bytes_out, std::span<float> result)
      : where_(where), bytes_in_(bytes_in), bytes_out_(bytes_out), in_(where.take(bytes_in)),
        out_(bytes_out != 0 ? where.take(bytes_out) : device_memory()), result_(result) {}
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  ~on_device() {
    sum_ = {};  // waits
    where_.unused.emplace(bytes_in_, std::move(in_));
    if (out_) where_.unused.emplace(bytes_out_, std::move(out_));
  }

  float* in() const { return reinterpret_cast<float*>(in_.get()); }
  float* out() const { return reinterpret_cast<float*>(out_.get()); }
  void starts(hocket::request sum) { sum_ = std::move(sum); }

  bool test() {
    if (!sum_.test()) return false;
    wait();
    return true;
  }
  void wait() {
    if (std::exchange(over_, true)) return;
    sum_.wait();
    where_.copy(reinterpret_cast<std::uintptr_t>(result_.data()), out_ ? out_.get() : in_.get(), result_.size_bytes());
    where_.wait();
  }

 private:
  device_sums::parts& where_;
  std::size_t bytes_in_;
  std::size_t bytes_out_;
  device_memory in_;
  device_memory out_;
  std::span<float> result_;
  hocket::request sum_;
  bool over_ = false;
};

void require_device() {
  hocket::failure why;
  if (ipc::driver::load(why)) return;
  throw std::invalid_argument(
      "--device cuda: " + why.reason +
      ". Run it on a machine where nvidia-smi lists a GPU, or add gradients on the host: --device cpu");
}

device_sums::device_sums(int rank) : parts_(std::make_unique<parts>()) {
  hocket::failure why;
  std::optional<ipc::driver> loaded = ipc::driver::load(why);
  must(why);
  parts& own = *parts_;
  own.driver = *loaded;
  int devices = 0;
  ipc::device_number device = 0;
  own.ask("counting devices", own.driver.device_get_count(&devices));
  own.ask("finding a device", own.driver.device_get(&device, rank % devices));
  own.at.through = &own.driver;
  own.ask("entering a device's context", own.driver.device_primary_ctx_retain(&own.at.where, device));
  own.ask("entering a device's context", own.driver.ctx_set_current(own.at.where));
  must(ipc::owned_stream<ipc::driver>::make(own.at, own.stream));
}

/// Keeps the context until the program exits, because communicators have streams and pinned memory in it.
device_sums::~device_sums() = default;

bucket_sum device_sums::all_reduce(const communicator& comm, std::span<float> values) {
  auto made = std::make_unique<bucket_sum::on_device>(*parts_, values.size_bytes(), 0, values);
  parts_->copy(reinterpret_cast<std::uintptr_t>(made->in()), reinterpret_cast<std::uintptr_t>(values.data()),
               values.size_bytes());
  made->starts(hocket::all_reduce_async(comm, hocket::in_place(hocket::cuda::device(made->in(), values.size())),
                                        std::plus<>{}, hocket::with(parts_->order())));
  return bucket_sum(std::move(made));
}

bucket_sum device_sums::reduce_scatter(const communicator& comm, std::span<const float> values, std::span<float> own,
                                       hocket::counts lengths) {
  auto made = std::make_unique<bucket_sum::on_device>(*parts_, values.size_bytes(), own.size_bytes(), own);
  parts_->copy(reinterpret_cast<std::uintptr_t>(made->in()), reinterpret_cast<std::uintptr_t>(values.data()),
               values.size_bytes());
  made->starts(hocket::reduce_scatter_v_async(comm, hocket::cuda::device(made->in(), values.size()),
                                              hocket::cuda::device(made->out(), own.size()), lengths, std::plus<>{},
                                              hocket::with(parts_->order())));
  return bucket_sum(std::move(made));
}

bucket_sum::bucket_sum(hocket::request of_host) : host_(std::move(of_host)) {}
bucket_sum::bucket_sum(std::unique_ptr<on_device> of_device) : device_(std::move(of_device)) {}
bucket_sum::bucket_sum(bucket_sum&&) noexcept = default;
bucket_sum& bucket_sum::operator=(bucket_sum&&) noexcept = default;
bucket_sum::~bucket_sum() = default;

bool bucket_sum::test() { return device_ ? device_->test() : host_.test(); }
void bucket_sum::wait() { device_ ? device_->wait() : host_.wait(); }

}  // namespace gpt
