// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How busy NVIDIA's GPUs are, by NVML, the driver's library for management. It is loaded when it is needed, so that
/// programs neither link it nor need its headers.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>
#include <optional>
#include <type_traits>

#include <dlfcn.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

struct gpu_usage {
  double busy_fraction = 0;  ///< of the last sample period, which is below a second
  std::uint64_t used_bytes = 0, all_bytes = 0;
};

/// NVML of this machine. Copyable; stays loaded until the program ends.
class nvml {
 public:
  /// Loads and starts the library. Returns nothing where there is no driver of NVIDIA. Takes milliseconds, or up to seconds
  /// if no other process uses a GPU.
  static std::optional<nvml> load(const char* library = "libnvidia-ml.so.1") {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return {};
    return load_from([&](const char* name) { return ::dlsym(handle, name); });
  }

  /// Like `load`, with functions that `lookup(name)` finds.
  template <class Lookup>
  static std::optional<nvml> load_from(const Lookup& lookup) {
    nvml result;
    int (*start)() = nullptr;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(lookup(name));
      return function != nullptr;
    };
    const bool has_all = find(start, "nvmlInit_v2") && find(result.count_, "nvmlDeviceGetCount_v2") &&
                         find(result.by_index_, "nvmlDeviceGetHandleByIndex_v2") &&
                         find(result.utilization_, "nvmlDeviceGetUtilizationRates") &&
                         find(result.memory_, "nvmlDeviceGetMemoryInfo");
    if (!has_all || start() != success || result.count_(&result.gpus_) != success) return {};
    return result;
  }

  /// The number of GPUs, whether CUDA_VISIBLE_DEVICES hides them or not.
  unsigned gpus() const noexcept { return gpus_; }

  /// Returns the usage of a GPU; empty if it can't be read, as on a GPU that is divided by MIG.
  std::optional<gpu_usage> usage_of(unsigned gpu) const {
    device handle = nullptr;
    utilization busy{};
    memory bytes{};
    if (by_index_(gpu, &handle) != success || utilization_(handle, &busy) != success ||
        memory_(handle, &bytes) != success)
      return {};
    return gpu_usage{busy.gpu_percent / 100.0, bytes.used, bytes.total};
  }

  // The types of NVML, as its functions expect them.
  using device = void*;
  struct utilization {
    unsigned gpu_percent, memory_percent;
  };
  struct memory {
    unsigned long long total, free, used;
  };
  static constexpr int success = 0;

 private:
  int (*count_)(unsigned*) = nullptr;
  int (*by_index_)(unsigned, device*) = nullptr;
  int (*utilization_)(device, utilization*) = nullptr;
  int (*memory_)(device, memory*) = nullptr;
  unsigned gpus_ = 0;
};

}  // namespace platform
HOCKET_END_NAMESPACE
