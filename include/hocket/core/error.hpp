// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One error type for all failures. A program can test *what* failed: codes are equal if their values are, also across
/// shared objects. A person can read *where*: operation, sequence number, step, peer, call.
///
/// Layers below the public functions never throw on a communication failure: they return a `failure`, a value. The
/// public function turns it into a thrown `error`, or into the caller's `std::error_code&`. Under -fno-exceptions
/// the throwing forms print the error and call `std::terminate`; such programs use the `std::error_code&` forms.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// The kinds of failures. Values are stable; 0 is never an error.
enum class errc : int {
  timeout = 1,       ///< the deadline passed while the operation waited for a peer
  aborted,           ///< `abort()` or a stop token ended the operation
  peer_lost,         ///< a peer process is gone
  mismatch,          ///< ranks called different operations, counts, types or algorithms
  truncated,         ///< a message was longer than the receive buffer
  invalid_argument,  ///< an argument of this call is wrong; nothing was sent
  concurrent_use,    ///< two threads used one communicator at the same time
  revoked,           ///< an earlier failure ended this communicator
  unreachable,       ///< no transport leads to a peer
  refused,           ///< a peer refused the connection: wrong token, version or byte order
  bad_environment,   ///< a variable, file or limit that start-up depends on is wrong or missing
  out_of_memory,     ///< memory could not be allocated: memory that peers can reach, or memory that a call needs
  corrupted,         ///< bytes were damaged: those of a message, if the call has `require(checksummed)`, or of a file
  system             ///< the operating system or a communication library reported an error
};

namespace detail {

class HOCKET_EXPORT_TYPE error_category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "hocket"; }

  std::string message(int condition) const override;

  using std::error_category::equivalent;  // the other overload stays visible
  /// Compares value and category name, not addresses: two shared objects may each have an instance of this category.
  bool equivalent(const std::error_code& code, int condition) const noexcept override {
    return code.value() == condition && std::string_view(code.category().name()) == name();
  }
};

}  // namespace detail

/// Returns the category of hocket's error codes.
inline const std::error_category& error_category() noexcept {
  static const detail::error_category instance;
  return instance;
}

/// Makes hocket's codes `std::error_code`s.
inline std::error_code make_error_code(errc value) noexcept { return {static_cast<int>(value), error_category()}; }
/// Makes hocket's codes `std::error_condition`s.
inline std::error_condition make_error_condition(errc value) noexcept {
  return {static_cast<int>(value), error_category()};
}

/// Where a failure happened. Unknown members keep their defaults, and messages omit them.
struct error_context {
  const char* operation = nullptr;  ///< a string literal: "all_reduce"
  std::uint64_t sequence = 0;       ///< number of the operation on its communicator, from 1
  int rank = -1;                    ///< this rank
  int ranks = 0;                    ///< size of the communicator
  int peer = -1;                    ///< the culprit, or the rank that the call waited for
  int lane = -1;                    ///< lane and step of the plan that was running
  int step = -1;                    ///< step of `lane`
  std::source_location site{};      ///< the caller's line
};

/// A failure as a value: what, why and where. `operator bool` is true if something failed.
struct failure {
  std::error_code code;   ///< what failed: a value of `errc`
  std::string reason;     ///< one sentence for the user: what was wrong, and what would be right
  error_context context;  ///< where it failed

  explicit operator bool() const noexcept { return static_cast<bool>(code); }

  /// The whole message, as `error::what()` shows it.
  std::string message() const;

  /// Returns where and why, to be quoted in another failure's message, which has its own error code and ranks.
  std::string quoted() const;
};

/// Returns a failure. Marked as cold, like the other functions that make failures, so that error handling takes little
/// room in its callers.
HOCKET_DETAIL_RARE HOCKET_DECL failure make_failure(errc code, std::string reason, error_context context = {});

/// Success or a failure, as cheap as a pointer on success. If there is no memory to store the failure, the outcome is
/// `out_of_memory`.
class outcome {
 public:
  outcome() noexcept = default;
  /// Holds `cause`, or success if `cause` is no failure.
  outcome(failure cause) noexcept  // NOLINT: implicit, so that functions can return a failure
      : cause_(cause ? kept(std::move(cause)) : nullptr) {}

  bool failed() const noexcept { return cause_ != nullptr; }  ///< true if this holds a failure
  /// The failure's code; no error on success.
  std::error_code code() const noexcept { return failed() ? cause_->code : std::error_code(); }
  /// The failure. Must be called only if `failed()`.
  const failure& cause() const noexcept { return *cause_; }

 private:
  static const failure* kept(failure cause) noexcept;
  static const failure& no_memory() noexcept;
  struct release {
    void operator()(const failure* cause) const noexcept;
  };

  std::unique_ptr<const failure, release> cause_;
};

/// The exception type of all throwing functions in hocket.
class HOCKET_EXPORT_TYPE error : public std::system_error {
 public:
  /// An exception that reports `cause`.
  explicit error(failure cause);

  const char* what() const noexcept override { return text_.c_str(); }      ///< the whole message
  const error_context& context() const noexcept { return cause_.context; }  ///< where it failed
  const std::string& reason() const noexcept { return cause_.reason; }      ///< one sentence for the user
  const failure& cause() const noexcept { return cause_; }                  ///< code, reason and context

 private:
  failure cause_;
  std::string text_;
};

/// Ends the current call with `cause`: throws `error`; under -fno-exceptions prints it to stderr, and terminates.
[[noreturn]] HOCKET_DETAIL_RARE HOCKET_DECL void raise(failure cause);

[[noreturn]] HOCKET_DETAIL_RARE HOCKET_DECL void raise(errc code, std::string reason, error_context context = {});

HOCKET_END_NAMESPACE

template <>
struct std::is_error_code_enum<hocket::errc> : std::true_type {};

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/core/impl/error.ipp>
#endif
