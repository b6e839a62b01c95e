// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Host name resolution within a time limit. The system's resolver has fixed time limits of many seconds if a name
/// server does not answer, and its wait can't be interrupted. It therefore runs on a separate thread, which continues
/// alone if the limit passes, and ends when the resolver returns.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/platform/wait_ready.hpp>
#include <hocket/core/text.hpp>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE

namespace platform {

struct free_address_list {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};
using address_list = std::unique_ptr<addrinfo, free_address_list>;

namespace detail {

/// One query to the resolver. An empty `host` means all interfaces of this machine.
struct lookup {
  std::string host;
  std::string service;
  int flags = 0;
  int status = 0;
  address_list answer;
  pipe_ends done;  ///< holds a byte when `status` and `answer` are set

  /// Returns immediately if `host` is numeric, or if `more` requires it to be.
  void ask(int more) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV | flags | more;
    addrinfo* list = nullptr;
    status = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), service.c_str(), &hints, &list);
    if (status == 0) answer.reset(list);
  }
};

/// The function of the thread. Both sides share ownership of the query, so that neither has to outlive the other.
inline void* answer_lookup(void* argument) {
  const std::unique_ptr<std::shared_ptr<lookup>> mine(static_cast<std::shared_ptr<lookup>*>(argument));
  lookup& question = **mine;
  question.ask(0);
  constexpr std::byte there{1};
  static_cast<void>(write_all(question.done.write.get(), std::span(&there, 1)));
  return nullptr;
}

/// Returns false if no thread can be created. The thread blocks all signals, which are for the program's threads.
inline bool start_lookup(const std::shared_ptr<lookup>& question) {
  auto theirs = std::make_unique<std::shared_ptr<lookup>>(question);
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const bool started = ::pthread_create(&thread, nullptr, &answer_lookup, theirs.get()) == 0;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return false;
  static_cast<void>(theirs.release());  // now owned by the thread
  ::pthread_detach(thread);
  return true;
}

inline failure wait_for_answer(lookup& question, const wait_limit& limit) {
  if (failure cause = wait_ready(question.done.read.get(), POLLIN, limit)) return cause;
  std::byte there{};
  static_cast<void>(::read(question.done.read.get(), &there, 1));
  return {};
}

}  // namespace detail

/// Resolves `host`; all interfaces if it is empty. Numeric addresses need no thread. **Errors.** `unreachable`, also if
/// the resolver takes longer than the limit; `aborted`.
inline failure resolve(const std::string& host, std::uint16_t port, const wait_limit& limit, address_list& result) {
  const auto question = std::make_shared<detail::lookup>();
  question->host = host;
  question->service = std::to_string(port);
  question->flags = host.empty() ? AI_PASSIVE : 0;
  question->ask(AI_NUMERICHOST);
  if (question->status == EAI_NONAME) {
    question->done = make_pipe();
    if (!detail::start_lookup(question)) {
      question->ask(0);
    } else if (failure cause = detail::wait_for_answer(*question, limit)) {
      if (cause.code != errc::timeout) return cause;
      return make_failure(errc::unreachable, hocket::detail::concat({"cannot resolve host name '", host,
                                                                     "': the name servers do not answer"}));
    }
  }
  if (question->status != 0) {
    return make_failure(errc::unreachable, hocket::detail::concat({"cannot resolve host name '", host,
                                                                   "': ", ::gai_strerror(question->status)}));
  }
  result = std::move(question->answer);
  return {};
}

}  // namespace platform

HOCKET_END_NAMESPACE
