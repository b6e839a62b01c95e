// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/core/error.hpp>: the texts of errors, and how errors are stored and thrown.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

HOCKET_DECL std::string error_category::message(int condition) const {
  switch (static_cast<errc>(condition)) {
    case errc::timeout: return "timed out";
    case errc::aborted: return "aborted";
    case errc::peer_lost: return "peer lost";
    case errc::mismatch: return "calls do not match across ranks";
    case errc::truncated: return "message truncated";
    case errc::invalid_argument: return "invalid argument";
    case errc::concurrent_use: return "communicator used by two threads at the same time";
    case errc::revoked: return "communicator revoked";
    case errc::unreachable: return "peer unreachable";
    case errc::refused: return "connection refused by peer";
    case errc::bad_environment: return "bad environment";
    case errc::out_of_memory: return "out of memory";
    case errc::corrupted: return "data corrupted";
    case errc::system: return "system error";
  }
  return "unknown error";
}

}  // namespace detail

HOCKET_DECL std::string failure::message() const {
  std::string text;
  if (context.operation != nullptr) {
    text += context.operation;
    if (context.sequence != 0) detail::append(text, {" #", context.sequence});
  }
  if (context.rank >= 0) {
    if (!text.empty()) text += ' ';
    detail::append(text, {"on rank ", context.rank});
    if (context.ranks > 0) detail::append(text, {" of ", context.ranks});
  }
  if (!text.empty()) text += ": ";
  text += code.message();
  if (!reason.empty()) detail::append(text, {": ", reason});
  if (context.peer >= 0) detail::append(text, {" [peer: rank ", context.peer, "]"});
  if (context.step >= 0) {
    detail::append(text, {" [step ", context.step});
    if (context.lane > 0) detail::append(text, {" of lane ", context.lane});
    text += ']';
  }
  if (context.site.line() != 0) {
    detail::append(text, {" [called at ", context.site.file_name(), ':', context.site.line(), ']'});
  }
  return text;
}

HOCKET_DECL std::string failure::quoted() const {
  std::string text;
  if (context.operation != nullptr) {
    text += context.operation;
    if (context.sequence != 0) detail::append(text, {" #", context.sequence});
    if (context.step >= 0) detail::append(text, {", step ", context.step});
    if (context.site.line() != 0) {
      detail::append(text, {", called at ", context.site.file_name(), ':', context.site.line()});
    }
    text += ": ";
  }
  return text + (reason.empty() ? code.message() : reason);
}

HOCKET_DECL failure make_failure(errc code, std::string reason, error_context context) {
  return {make_error_code(code), std::move(reason), context};
}

HOCKET_DECL void raise(failure cause) {
#if HOCKET_HAS_EXCEPTIONS
  throw error(std::move(cause));
#else
  std::fprintf(stderr, "hocket: %s\n", cause.message().c_str());
  std::terminate();
#endif
}

HOCKET_DECL void raise(errc code, std::string reason, error_context context) {
  raise(make_failure(code, std::move(reason), context));
}

HOCKET_NO_INLINE HOCKET_DECL const failure* outcome::kept(failure cause) noexcept {
  const failure* const made = new (std::nothrow) failure(std::move(cause));
  return made != nullptr ? made : &no_memory();
}

HOCKET_DECL const failure& outcome::no_memory() noexcept {
  static const failure instance{make_error_code(errc::out_of_memory), {}, {}};
  return instance;
}

HOCKET_NO_INLINE HOCKET_DECL void outcome::release::operator()(const failure* cause) const noexcept {
  if (cause != &no_memory()) delete cause;
}

HOCKET_DECL error::error(failure cause)
    : std::system_error(cause.code), cause_(std::move(cause)), text_(cause_.message()) {}

HOCKET_END_NAMESPACE
