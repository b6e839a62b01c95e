// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Downloads and a cache of files as metrics:
///
/// | metric | what it is |
/// |---|---|
/// | `hocket_cache_hits` | files that were opened without a download by this process |
/// | `hocket_cache_downloads` | files that this process has downloaded |
/// | `hocket_cache_downloaded_bytes` | bytes that it has written to the cache |
/// | `hocket_cache_evictions` | files that it has removed to make room |
/// | `hocket_cache_evicted_bytes` | room that this made |
/// | `hocket_source_requests` | requests to storage, with those that failed |
/// | `hocket_source_retries` | requests after one that has failed |
/// | `hocket_source_received_bytes` | bytes of files that were received |
///
/// @code
/// hocket::observe::watch(metrics, cache);   // a file_cache
/// hocket::observe::watch(metrics, web);     // an http_source
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/data/cache/cache_counts.hpp>
#include <hocket/data/remote/request_counts.hpp>
#include <hocket/observe/followed_counter.hpp>
#include <hocket/observe/registry.hpp>

#include <concepts>
#include <memory>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

/// The metrics of one cache. Further caches add to the same counters.
class followed_cache {
 public:
  followed_cache(registry& in, std::shared_ptr<const data::cache_counts> counts)
      : counts_(std::move(counts)),
        hits_(in, "hocket_cache_hits", "files that were opened without a download by this process"),
        downloads_(in, "hocket_cache_downloads", "files that this process has downloaded"),
        downloaded_(in, "hocket_cache_downloaded_bytes", "bytes that this process has written to the cache"),
        evictions_(in, "hocket_cache_evictions", "files that this process has removed to make room"),
        evicted_(in, "hocket_cache_evicted_bytes", "bytes of room that this process has made by removing files") {}

  void update() noexcept {
    hits_.follow(counts_->hits.load());
    downloads_.follow(counts_->downloads.load());
    downloaded_.follow(counts_->downloaded_bytes.load());
    evictions_.follow(counts_->evictions.load());
    evicted_.follow(counts_->evicted_bytes.load());
  }

 private:
  const std::shared_ptr<const data::cache_counts> counts_;
  followed_counter hits_, downloads_, downloaded_, evictions_, evicted_;
};

/// The metrics of one source. Further sources add to the same counters.
class followed_requests {
 public:
  followed_requests(registry& in, std::shared_ptr<const data::request_counts> counts)
      : counts_(std::move(counts)),
        requests_(in, "hocket_source_requests", "requests to storage, with those that failed"),
        retries_(in, "hocket_source_retries", "requests to storage after one that has failed"),
        received_(in, "hocket_source_received_bytes", "bytes of files that were received from storage") {}

  void update() noexcept {
    requests_.follow(counts_->requests.load());
    retries_.follow(counts_->retries.load());
    received_.follow(counts_->bytes.load());
  }

 private:
  const std::shared_ptr<const data::request_counts> counts_;
  followed_counter requests_, retries_, received_;
};

}  // namespace detail

/// Shows what a cache has downloaded, found and removed, from its first call on; a snapshot of the metrics has the
/// values at that time. The cache may be destroyed before the registry. Several caches of one registry are added up:
/// watch each once. The second form does the same for a source that counts requests, such as `http_source`.
///
/// **Cost.** 5 KiB; 3 KiB for a source. **Threads.** Any.
template <class Cache>
  requires requires(const Cache& cache) {
    { cache.counts() } -> std::same_as<std::shared_ptr<const data::cache_counts>>;
  }
void watch(registry& metrics, const Cache& cache) {
  metrics.before_read(
      [its = std::make_shared<detail::followed_cache>(metrics, cache.counts())]() noexcept { its->update(); });
}
template <class Source>
  requires requires(const Source& source) {
    { source.counts() } -> std::same_as<std::shared_ptr<const data::request_counts>>;
  }
void watch(registry& metrics, const Source& source) {
  metrics.before_read(
      [its = std::make_shared<detail::followed_requests>(metrics, source.counts())]() noexcept { its->update(); });
}

}  // namespace observe
HOCKET_END_NAMESPACE
