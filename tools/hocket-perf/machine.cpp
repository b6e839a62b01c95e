// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "machine.hpp"

#include "text.hpp"

#include <hocket/core/config.hpp>

#include <cstddef>
#include <ctime>
#include <fstream>

#include <sys/utsname.h>

namespace perf {

std::string version() { return text("%d.%d.%d", HOCKET_VERSION_MAJOR, HOCKET_VERSION_MINOR, HOCKET_VERSION_PATCH); }

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char shown[32] = "";
  if (::gmtime_r(&now, &parts) != nullptr) std::strftime(shown, sizeof shown, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return shown;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

std::string kernel_name() {
  utsname system{};
  return ::uname(&system) == 0 ? system.release : "unknown";
}

}  // namespace perf
