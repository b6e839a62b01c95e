// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The use of GPUs, by functions that stand for those of NVML.
#include "support/catch.hpp"

#include <hocket/observe/gpu_resources.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace hocket::observe;
using hocket::platform::nvml;

constexpr int failed = 999;
/// Two GPUs, of which the second can't be read.
int nvml_start() { return nvml::success; }
int nvml_start_fails() { return failed; }
int nvml_count(unsigned* result) { return *result = 2, nvml::success; }
int nvml_by_index(unsigned i, nvml::device* result) {
  static int first;
  *result = &first;
  return i == 0 ? nvml::success : failed;
}
int nvml_utilization(nvml::device, nvml::utilization* result) { return *result = {75, 30}, nvml::success; }
int nvml_memory(nvml::device, nvml::memory* result) { return *result = {1000, 400, 600}, nvml::success; }

/// Loads these functions. `missing` is not found; `start` starts the library.
std::optional<nvml> load_double(const std::string& missing = "", int (*start)() = nvml_start) {
  return nvml::load_from([&](const std::string& name) -> void* {
    if (name == missing) return nullptr;
    if (name == "nvmlInit_v2") return reinterpret_cast<void*>(start);
    if (name == "nvmlDeviceGetCount_v2") return reinterpret_cast<void*>(nvml_count);
    if (name == "nvmlDeviceGetHandleByIndex_v2") return reinterpret_cast<void*>(nvml_by_index);
    if (name == "nvmlDeviceGetUtilizationRates") return reinterpret_cast<void*>(nvml_utilization);
    if (name == "nvmlDeviceGetMemoryInfo") return reinterpret_cast<void*>(nvml_memory);
    return nullptr;
  });
}

}  // namespace

TEST_CASE("GPUs have metrics of their own; one that can't be read keeps its values") {
  registry metrics;
  gpu_resources used(metrics, load_double());
  CHECK(used.gpus() == 2);
  used.update();
  std::vector<double> values;
  for (const family& each : metrics.read()) {
    for (const sample& one : each.samples) values.push_back(one.value);
  }
  CHECK(values == std::vector<double>{0.75, 0, 1000, 0, 600, 0});  // busy, all bytes, used bytes: each of two GPUs
}

TEST_CASE("without NVML, with an older one, or one that does not start, there are no metrics of GPUs") {
  CHECK_FALSE(nvml::load("libhocket-has-no-such-library.so.1"));
  CHECK_FALSE(load_double("", nvml_start_fails));
  for (const char* const name : {"nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2",
                                 "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo"})
    CHECK_FALSE(load_double(name));
  registry metrics;
  gpu_resources none(metrics, std::nullopt);
  none.update();
  CHECK(none.gpus() == 0);
  CHECK(metrics.read().empty());
}

TEST_CASE("GPUs of this machine, if there are any, have memory") {
  registry metrics;
  const gpu_resources used(metrics);
  if (used.gpus() == 0) {
    WARN("left out: there is no GPU of NVIDIA, or no driver");
    return;
  }
  CHECK(metrics.read().size() == 3);
}
