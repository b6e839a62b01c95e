// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Metrics of processes of one host, in a folder with a file per rank, so that one process can show those of all.
///
/// Files need no call of other ranks: a rank that computes for a long time, or that waits for a dead one, is seen as
/// well. Each file is replaced at once, once a second. One that has not been replaced for 5 s is of a rank that has
/// died or is stopped, and is not read. Processes of other users can't read the files.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/input_file.hpp>
#include <hocket/core/platform/thread_name.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/registry.hpp>
#include <hocket/observe/snapshot_bytes.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// When files of metrics are written, and from when on they are not read.
inline constexpr std::chrono::seconds metrics_period{1}, longest_metrics_age{5};

namespace detail {

inline constexpr std::string_view metrics_ending = ".metrics";
inline constexpr std::size_t most_metrics_bytes = std::size_t{16} << 20;

/// Returns whether a file has been replaced lately. One from the future is of a clock that has been set back.
inline bool is_recent(const platform::input_file& file) {
  const auto age = std::chrono::system_clock::now().time_since_epoch() - file.modified();
  return std::chrono::abs(age) <= longest_metrics_age;
}

/// Metrics of a rank, and when they were written.
struct dated_metrics {
  std::chrono::nanoseconds written{};
  rank_metrics from;
};

/// Reads the metrics of a rank; returns false if there is no such file of a live rank.
inline bool read_metrics_file(const std::string& path, dated_metrics& result) {
  platform::input_file file(path, platform::file_kinds::regular);
  result.written = file.modified();
  std::string bytes;
  return file && is_recent(file) && platform::read_whole(file, most_metrics_bytes, bytes).empty() &&
         read_snapshot(bootstrap::text_bytes(bytes), result.from).empty();
}

/// Returns labels of a registry, sorted. Raises `invalid_argument` if sinks can't show them.
inline labels checked_constant(labels constant) {
  std::sort(constant.begin(), constant.end());
  if (const std::string problem = problem_with(constant); !problem.empty())
    raise(errc::invalid_argument, "labels of a registry: " + problem);
  return constant;
}

/// Returns the metrics of a registry; nothing if a function of its `before_read` raises an error, which must not end the
/// thread of a sink and so the process.
inline std::optional<snapshot> read_if_possible(const registry& metrics) {
#if HOCKET_HAS_EXCEPTIONS
  try {
    return metrics.read();
  } catch (const std::exception&) {
    return {};
  }
#else
  return metrics.read();
#endif
}

}  // namespace detail

/// Writes the metrics of this process to a file of a folder until this object is destroyed, which removes the file. One
/// thread does this.
class metrics_writer {
 public:
  /// Creates the folder if its parent exists. `rank` is that within the host; `metrics` must outlive this object.
  ///
  /// **Errors.** `invalid_argument` if a label is not valid; `system` if the file can't be written, or would have more
  /// than 16 MiB, which readers ignore; those of `registry::read`. If the metrics can't be read or written later, readers
  /// miss them until they can. A folder that is removed is created again.
  metrics_writer(const std::string& folder, int rank, const registry& metrics, labels constant)
      : folder_(folder), name_(hocket::detail::concat({"rank-", rank, detail::metrics_ending})), metrics_(metrics),
        constant_(detail::checked_constant(std::move(constant))) {
    if (failure cause = write(metrics_.read())) raise(std::move(cause));
    thread_ = std::thread([this] { run(); });
  }
  metrics_writer(const metrics_writer&) = delete;
  metrics_writer& operator=(const metrics_writer&) = delete;
  ~metrics_writer() {
    {
      const std::scoped_lock lock(mutex_);
      must_end_ = true;
    }
    changed_.notify_one();
    thread_.join();
    platform::file_system().remove(folder_ + '/' + name_);
  }

 private:
  failure write(const snapshot& now) const {
    const bootstrap::blob bytes = snapshot_bytes(now, constant_);
    if (bytes.size() > detail::most_metrics_bytes) {
      return make_failure(
          errc::system,
          hocket::detail::concat({"cannot write '", folder_, '/', name_, "': the metrics have ", bytes.size(),
                                  " bytes, and readers accept at most ", detail::most_metrics_bytes}));
    }
    platform::make_directory(folder_);
    return platform::write_file(folder_, name_, bytes);
  }

  void run() {
    platform::name_this_thread("hocket-metrics");
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, metrics_period, [&] { return must_end_; })) {
      if (const auto now = detail::read_if_possible(metrics_)) write(*now);
    }
  }

  std::string folder_, name_;
  const registry& metrics_;
  labels constant_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool must_end_ = false;
  std::thread thread_;
};

/// Returns the metrics of the live ranks that write to a folder, in the order of their labels. Of ranks with equal
/// labels, which sinks could not distinguish, that with the newest file is returned: the other may have died.
inline std::vector<rank_metrics> read_metrics_folder(const std::string& folder) {
  std::map<labels, detail::dated_metrics> found;
  for (const std::string& name : platform::list_directory(folder)) {
    detail::dated_metrics next;
    if (!name.ends_with(detail::metrics_ending) || !detail::read_metrics_file(folder + '/' + name, next)) continue;
    detail::dated_metrics& its = found[next.from.constant];
    if (next.written >= its.written) its = std::move(next);
  }
  std::vector<rank_metrics> result;
  for (auto& [constant, each] : found) result.push_back(std::move(each.from));
  return result;
}

}  // namespace observe
HOCKET_END_NAMESPACE
