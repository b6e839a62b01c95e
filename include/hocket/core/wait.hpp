// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Waits for several requests: for all of them, or for the first that ends.
///
/// Each rank can wait in its own order and on several communicators: all operations are driven until they have ended. A
/// loop of `request::wait` drives only the communicator of one request at a time, so that ranks that wait for several
/// communicators in different orders would wait for each other.
///
///     hocket::request sent = hocket::send_async(comm, out, hocket::peer{next});
///     hocket::request received = hocket::recv_async(comm, in, hocket::peer{previous});
///     hocket::wait_all(sent, received);
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/request.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

struct request_access {
  /// Returns the communicator of the operation; null for an empty request.
  static const void* driver(const request& of) noexcept { return of.started_ ? of.started_->driver() : nullptr; }
};

/// Returns whether waiting for one of the requests drives all of them.
template <class At>
bool have_one_driver(std::size_t count, const At& at) {
  const void* common = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const void* const driver = request_access::driver(at(i));
    if (common == nullptr) common = driver;
    if (driver != nullptr && driver != common) return false;
  }
  return true;
}

/// Returns whether the operation has ended, or can't be driven because another thread uses its communicator.
inline bool is_settled(request& one) { return one.test() || one.error(); }

/// Waits for requests at(0) to at(count - 1). Returns the failure of the first that has failed.
template <class At>
failure wait_for_all(std::size_t count, const At& at) {
  bool settled = have_one_driver(count, at);  // then the first `wait` drives all of them
  while (!settled) {
    settled = true;
    for (std::size_t i = 0; i < count; ++i) settled = is_settled(at(i)) && settled;
  }
  failure first;
  for (std::size_t i = 0; i < count; ++i) {
    std::error_code code;
    at(i).wait(code);
    if (code && !first) first = at(i).error();
  }
  return first;
}

/// Waits until one of the requests that are not empty has ended. Returns its index; if none can be driven, the first
/// that another thread prevents; `count` if all are empty.
template <class At>
std::size_t wait_for_any(std::size_t count, const At& at) {
  for (;;) {
    bool is_any_pending = false;
    std::size_t refused = count;
    for (std::size_t i = 0; i < count; ++i) {
      if (at(i).is_empty()) continue;
      if (at(i).test()) return i;
      const bool is_refused = static_cast<bool>(at(i).error());
      if (is_refused && refused == count) refused = i;
      is_any_pending = is_any_pending || !is_refused;
    }
    if (!is_any_pending) return refused;
  }
}

/// True if all are requests, except the last, which may be a `std::error_code`.
template <class... Given>
consteval bool are_requests_and_perhaps_a_code() {
  bool has_code = false, fine = true;
  [[maybe_unused]] const auto add = [&](bool is_request, bool is_code) {
    fine = fine && !has_code && (is_request || is_code);
    has_code = has_code || is_code;
  };
  (add(std::same_as<Given, request>, std::same_as<Given, std::error_code>), ...);
  return fine;
}

/// The arguments of a call, by their kinds.
template <std::size_t Most>
struct sorted_arguments {
  std::array<request*, Most> requests{};
  std::size_t count = 0;
  std::error_code* code = nullptr;

  void add(request& one) noexcept { requests[count++] = &one; }
  void add(std::error_code& one) noexcept { code = &one; }
};

/// Empties a request whose operation has ended, and returns its failure.
inline failure take_ended(request& ended) {
  std::error_code code;
  ended.wait(code);
  failure cause = ended.error();
  if (code == errc::concurrent_use) return cause;  // it continues
  const request over = std::move(ended);
  return cause;
}

}  // namespace detail

/// Waits until all operations have ended, also if some fail, and then throws the failure of the first in the list that
/// has failed; `error()` of each request has its own. Empty requests have ended. Each operation waits at most until its
/// own deadline. An operation whose communicator another thread uses fails with `concurrent_use`, as in
/// `request::wait`, and continues: wait again later.
inline void wait_all(std::span<request> requests) {
  const failure first = detail::wait_for_all(requests.size(), [&](std::size_t i) -> request& { return requests[i]; });
  if (first) raise(first);
}
/// The same; `code` receives the code of the failure, which is thrown otherwise.
inline void wait_all(std::span<request> requests, std::error_code& code) {
  code = detail::wait_for_all(requests.size(), [&](std::size_t i) -> request& { return requests[i]; }).code;
}
/// The same for requests that are passed one by one: `wait_all(first, second)`. The last argument may be a
/// `std::error_code`, which receives the code of the failure: `wait_all(first, second, code)`.
template <class... Given>
  requires(detail::are_requests_and_perhaps_a_code<Given...>())
void wait_all(Given&... given) {
  detail::sorted_arguments<sizeof...(Given)> sorted;
  (sorted.add(given), ...);
  const failure first =
      detail::wait_for_all(sorted.count, [&](std::size_t i) -> request& { return *sorted.requests[i]; });
  if (sorted.code != nullptr) {
    *sorted.code = first.code;
  } else if (first) {
    raise(first);
  }
}

/// Waits until one of the operations has ended, and returns the index of its request, which is empty then: in a loop,
/// each request is returned once. Returns `requests.size()` if all requests are empty. If the operation has failed,
/// throws its failure instead. Fails with `concurrent_use`, and leaves the request as it is, only if other threads use
/// the communicators of all operations. Drives all communicators meanwhile.
///
/// Cost: tests all requests in turn. Between threads this takes 0.2 to 0.8 us for each pending one: a message that ends
/// one of 1000 pending requests is noticed within a millisecond.
inline std::size_t wait_any(std::span<request> requests) {
  const auto at = [&](std::size_t i) -> request& { return requests[i]; };
  const std::size_t found = detail::wait_for_any(requests.size(), at);
  if (found == requests.size()) return found;
  if (const failure cause = detail::take_ended(requests[found])) raise(cause);
  return found;
}
/// The same; `code` receives the code of the failure, which is thrown otherwise.
inline std::size_t wait_any(std::span<request> requests, std::error_code& code) {
  code.clear();
  const auto at = [&](std::size_t i) -> request& { return requests[i]; };
  const std::size_t found = detail::wait_for_any(requests.size(), at);
  if (found < requests.size()) code = detail::take_ended(requests[found]).code;
  return found;
}

HOCKET_END_NAMESPACE
