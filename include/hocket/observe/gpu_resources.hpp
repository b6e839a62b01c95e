// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How busy the NVIDIA GPUs of this host are, as metrics:
///
/// | metric | what it is |
/// |---|---|
/// | `gpu_busy_ratio{gpu="0"}` | fraction of the last sample period, below a second, in which a kernel ran |
/// | `gpu_memory_used_bytes{gpu="0"}`, `gpu_memory_bytes{gpu="0"}` | memory that is in use, and all memory |
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/nvml.hpp>
#include <hocket/observe/registry.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// Adds these metrics to a registry, for all GPUs of the host: one rank of each host should have it.
///
/// **Threads.** Any. **Cost.** Those of NVML: the constructor may take seconds, `update` up to milliseconds.
class gpu_resources {
 public:
  /// Loads NVML. Without NVML, there are no metrics. `metrics` must outlive this object.
  explicit gpu_resources(registry& metrics) : gpu_resources(metrics, platform::nvml::load()) {}
  /// With an NVML that is loaded, or none.
  gpu_resources(registry& metrics, std::optional<platform::nvml> from) : from_(std::move(from)) {
    for (unsigned i = 0; i < gpus(); ++i) {
      const labels which{{"gpu", std::to_string(i)}};
      shown_.push_back(
          {&metrics.gauge("gpu_busy_ratio", "fraction of the last sample period in which a kernel ran", which),
           &metrics.gauge("gpu_memory_used_bytes", "memory of the GPU that is in use, in bytes", which),
           &metrics.gauge("gpu_memory_bytes", "memory of the GPU, in bytes", which)});
    }
    update();
  }

  unsigned gpus() const noexcept { return from_ ? from_->gpus() : 0; }

  /// Reads the present values. A GPU that can't be read keeps its values.
  void update() {
    for (unsigned i = 0; i < gpus(); ++i) {
      const auto now = from_->usage_of(i);
      if (!now) continue;
      shown_[i].busy->set(now->busy_fraction);
      shown_[i].used->set(static_cast<double>(now->used_bytes));
      shown_[i].all->set(static_cast<double>(now->all_bytes));
    }
  }

 private:
  struct gauges {
    gauge *busy, *used, *all;
  };

  std::optional<platform::nvml> from_;
  std::vector<gauges> shown_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
