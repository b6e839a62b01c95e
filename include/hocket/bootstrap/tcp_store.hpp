// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The default store: rank 0 serves the others over TCP. It needs no installation and one port, guarded by a token.
///
/// Ranks may start in any order: ranks that start before rank 0 retry until their deadline. Rank 0 listens on all
/// interfaces, unless the address is a loopback address; not before its host name has an address. When rank 0's store
/// ends, it ends for all ranks.
#pragma once

#include <hocket/bootstrap/store.hpp>
#include <hocket/bootstrap/store_connection.hpp>
#include <hocket/bootstrap/tcp_protocol.hpp>
#include <hocket/bootstrap/tcp_server.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/network_interface.hpp>
#include <hocket/core/platform/socket.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// All ranks pass the same values, except `rank` and `listener`.
struct tcp_store_options {
  int rank = 0;
  int ranks = 1;
  std::string host = "127.0.0.1";  ///< host of rank 0: a name, an IPv4 or an IPv6 address
  std::uint16_t port = 0;          ///< 0, for rank 0 only: the system picks one, see `tcp_store::port`
  std::string token;               ///< at most 1024 bytes
  int listener = -1;               ///< for rank 0: a socket that already listens; it is duplicated, not taken over
  bool open = false;               ///< the port was open before any rank started: if it is not, rank 0 has ended
};

namespace detail {

/// True for the literal addresses and the one name that never refer to another machine.
inline bool is_loopback(std::string_view host) noexcept {
  return host == "localhost" || host == "::1" || host.substr(0, 4) == "127.";
}

/// Waits until the host has an address: before, no rank could find the port. Fails with the limit.
inline failure await_address(const tcp_store_options& options, const wait_limit& limit) {
  if (options.listener >= 0 || is_loopback(options.host)) return {};
  std::chrono::nanoseconds pause = std::chrono::milliseconds(5);
  for (;;) {
    platform::address_list found;
    failure cause = platform::resolve(options.host, options.port, limit, found);
    if (cause.code != errc::unreachable) return cause;
    const failure end = platform::nap(pause, limit);
    if (end.code == errc::aborted) return end;
    if (end) {
      hocket::detail::append(cause.reason, {": set HOCKET_STORE to a name or an address of rank 0's host"});
      cause.code = make_error_code(errc::bad_environment);
      return cause;
    }
    pause = std::min<std::chrono::nanoseconds>(pause * 2, std::chrono::milliseconds(250));
  }
}

/// Opens the listening socket of rank 0.
inline failure open_listener(const tcp_store_options& options, platform::file_descriptor& listener) {
  if (options.listener >= 0) {
    listener.reset(::fcntl(options.listener, F_DUPFD_CLOEXEC, 3));
    if (listener) return {};
    return platform::system_failure("cannot use the listening socket that was passed in", errno);
  }
  failure cause;
  const std::string address = is_loopback(options.host) ? options.host : std::string();
  const int error = platform::listen_on(address, options.port, listener, cause);
  if (error == EADDRINUSE) {
    const std::string port = std::to_string(options.port);
    const std::string place = platform::endpoint_text(options.host, options.port);
    cause =
        make_failure(errc::bad_environment,
                     hocket::detail::concat(
                         {"port ", port, " is in use by another program, or another rank 0: set HOCKET_STORE=tcp://",
                          place, " with another port instead of ", port,
                          ", the same on every rank; it takes precedence over torchrun's MASTER_PORT"}));
  } else if (error == EACCES) {
    cause =
        make_failure(errc::bad_environment, hocket::detail::concat({"this user may not listen on port ", options.port,
                                                                    ": set a port of 1024 or more in HOCKET_STORE"}));
  }
  return cause;
}

}  // namespace detail

/// A connection to the store, and on rank 0 also the server. Move-only; one thread at a time. Unusable after an error
/// that does not concern a single key (`aborted`, `peer_lost`). A rank whose start-up is cancelled reports that to the
/// server, so that the other ranks' waits fail with `aborted` too.
class tcp_store {
 public:
  /// Serves if this is rank 0, and connects. **Errors.** `bad_environment`: the port is taken, or the host has no address;
  /// `refused`: wrong token, version or byte order; `mismatch`: two processes claim this rank, or the number of ranks differs; `timeout`;
  /// `aborted`: start-up was cancelled on this rank or `context.peer`.
  tcp_store(const tcp_store_options& options, const wait_limit& limit) : options_(options) {
    check();
    if (options_.rank == 0) {
      if (failure cause = detail::await_address(options_, limit)) fail("connect", std::move(cause));
      platform::file_descriptor listener;
      if (failure cause = detail::open_listener(options_, listener)) fail("connect", same_rank_or(std::move(cause)));
      server_ = std::make_unique<detail::tcp_server>(std::move(listener), options_.ranks, options_.token,
                                                     detail::server_limits(), make_own_connection());
      options_.port = server_->address().port();
    }
    connect(limit);
  }

  tcp_store(tcp_store&&) noexcept = default;
  tcp_store& operator=(tcp_store&&) = delete;
  ~tcp_store() { send_goodbye(); }

  /// Returns the port that rank 0 serves on.
  std::uint16_t port() const noexcept { return options_.port; }

  /// Returns the addresses of this rank's connection to the server. On rank 0, they say nothing about its network.
  store_connection connection() const noexcept {
    return {platform::local_ip_address(socket_.get()), platform::remote_ip_address(socket_.get())};
  }

  void set(std::string_view key, byte_view value, const wait_limit& limit) {
    call("store.set", {detail::request_kind::set, {}, {}, 0, 0}, key, value, limit);
  }

  /// Waits until some rank sets `key`.
  blob get(std::string_view key, const wait_limit& limit) {
    return call("store.get", {detail::request_kind::get, {}, {}, 0, 0}, key, {}, limit).body;
  }

  /// Adds to a counter, which begins at 0, and returns the sum.
  std::int64_t add(std::string_view key, std::int64_t number, const wait_limit& limit) {
    return call("store.add", {detail::request_kind::add, {}, {}, 0, number}, key, {}, limit).number;
  }

  /// See `exchange`. `rank` and `ranks` must be those of the store.
  std::vector<blob> gather(std::string_view key, int rank, int ranks, byte_view mine, const wait_limit& limit) {
    if (rank != options_.rank || ranks != options_.ranks) {
      fail("exchange", make_failure(errc::invalid_argument,
                                    hocket::detail::concat({"called as rank ", rank, " of ", ranks,
                                                            ", but the store was opened as another: pass the rank and "
                                                            "the number of ranks with which it was opened"})));
    }
    const answer all = call("exchange", {detail::request_kind::gather, {}, {}, 0, 0}, key, mine, limit);
    detail::blob_reader reader(all.body);
    std::vector<blob> result;
    if (!detail::read_blobs(reader, ranks, result)) fail("exchange", nonsense());
    return result;
  }

 private:
  struct answer {
    std::int64_t number = 0;
    blob body;
  };

  void check() const {
    std::string wrong;
    if (options_.ranks < 1 || options_.rank < 0 || options_.rank >= options_.ranks) {
      wrong = hocket::detail::concat(
          {"rank ", options_.rank, " of ", options_.ranks, " is not a rank: give 0 <= rank < ranks"});
    } else if (options_.token.size() > detail::max_token_size) {
      wrong = hocket::detail::concat(
          {"the token has ", options_.token.size(), " bytes: give at most ", detail::max_token_size});
    } else if (options_.rank != 0 && options_.port == 0) {
      wrong = "port 0 selects a free port on rank 0 only: pass the port that rank 0 got to the other ranks";
    }
    if (!wrong.empty()) fail("connect", make_failure(errc::invalid_argument, wrong));
  }

  /// Connects rank 0 to its own server. Not by the address of the server, for which the loopback interface must be up.
  /// Returns the server's end, or nothing if the system refuses; then rank 0 connects as others do.
  platform::file_descriptor make_own_connection() {
    std::array<int, 2> ends{-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) return {};
    own_.reset(ends[0]);
    return platform::file_descriptor(ends[1]);
  }

  /// Returns why this rank 0 can't listen: the port belongs to another process that claims to be rank 0 of this job, or
  /// the reason is `cause`.
  failure same_rank_or(failure cause) {
    if (cause.code != errc::bad_environment) return cause;
    failure reply_failure = connect_once(deadline::after(std::chrono::milliseconds(500)));
    socket_.reset();
    return reply_failure.code == errc::mismatch ? reply_failure : cause;
  }

  // ── Connecting ──────────────────────────────────────────────────────────────────────────────────────────────────

  void connect(const wait_limit& limit) {
    const auto begin = deadline::clock::now();
    const auto allowed = detail::allowed_time(limit);
    std::chrono::nanoseconds pause = std::chrono::milliseconds(5);
    std::string seen = "no answer yet";
    for (;;) {
      const failure cause = connect_once(limit);
      if (!cause) return;
      socket_.reset();
      const bool reply_failure = cause.code == errc::aborted && cause.context.peer >= 0;
      if (reply_failure || (cause.code != errc::unreachable && cause.code != errc::aborted)) fail("connect", cause);
      if (cause.code == errc::unreachable) seen = cause.reason;
      if (options_.open && closed_) {
        fail("connect",
             make_failure(errc::peer_lost, hocket::detail::concat(
                                               {"rank 0 is gone: its port ", place(),
                                                " was open before this rank started, and is closed now (", seen, ")"})),
             0);
      }
      const failure end = cause.code == errc::aborted ? cause : platform::nap(pause, limit);
      if (end.code == errc::aborted) {
        const auto waited = deadline::clock::now() - begin;
        fail("connect", make_failure(errc::aborted, "start-up was cancelled: " + not_served(waited, seen)), 0);
      }
      if (end) {
        const std::string text = not_served(allowed, seen) + ": is it running, and is this its address?";
        fail("connect", make_failure(errc::timeout, text), 0);
      }
      pause = std::min<std::chrono::nanoseconds>(pause * 2, std::chrono::milliseconds(250));
    }
  }

  std::string not_served(std::chrono::nanoseconds waited, const std::string& seen) const {
    return hocket::detail::concat(
        {"rank 0 has not served the store at ", place(), " after ", platform::seconds_text(waited), " (", seen, ")"});
  }

  /// Makes one attempt to connect. On `errc::unreachable`, another attempt may succeed.
  failure connect_once(const wait_limit& limit) {
    failure cause;
    if (own_) {
      socket_ = std::move(own_);
    } else if (server_) {
      const platform::socket_address self = server_->address();
      cause = platform::connect_to(self.get(), self.size, limit, socket_);
    } else {
      cause = platform::connect_to(options_.host, options_.port, limit, socket_);
      if (cause.code == errc::unreachable && detail::is_loopback(options_.host) && !platform::reaches_loopback())
        cause.reason += "; the loopback interface is down: `ip link set lo up`";
    }
    closed_ = platform::is_refused(cause);
    if (cause) return cause;
    detail::hello greeting;
    greeting.rank = options_.rank;
    greeting.ranks = options_.ranks;
    greeting.token = options_.token;
    cause = platform::send_all(socket_.get(), detail::encode(greeting), limit);
    std::array<std::byte, detail::hello_magic.size() + sizeof(std::uint32_t)> front;
    if (!cause) {
      cause = platform::receive_all(socket_.get(), front, limit);
      if (cause.code == errc::aborted) send_last_word(detail::request_kind::cancel);
    }
    closed_ = cause.code == errc::peer_lost;
    if (cause.code == errc::timeout) cause.reason = "it accepts connections there, but does not answer";
    if (cause.code == errc::timeout || cause.code == errc::peer_lost) cause.code = make_error_code(errc::unreachable);
    if (cause) return cause;
    if (blob_text(byte_view(front).first(detail::hello_magic.size())) != detail::hello_magic) {
      return make_failure(errc::refused,
                          hocket::detail::concat({"the server at ", place(),
                                                  " is not a hocket store: another program has that "
                                                  "port, so set another one in HOCKET_STORE on every rank"}));
    }
    answer ignored;
    cause = receive_answer(ignored, limit);
    if (cause.code == errc::aborted) send_last_word(detail::request_kind::cancel);
    return cause;
  }

  // ── Requests ────────────────────────────────────────────────────────────────────────────────────────────────────

  answer call(const char* operation, detail::request what, std::string_view key, byte_view value,
              const wait_limit& limit) {
    if (key.size() > detail::max_key_size || value.size() > detail::max_blob_size) {
      fail(operation, make_failure(errc::invalid_argument,
                                   hocket::detail::concat({"a key of ", key.size(), " and a value of ", value.size(),
                                                           " bytes: the store takes at most ", detail::max_key_size,
                                                           " and ", detail::max_blob_size})));
    }
    if (!socket_) fail(operation, make_failure(errc::revoked, "an earlier failure ended this connection to the store"));
    answered_ = false;
    const std::chrono::nanoseconds allowed = detail::allowed_time(limit);
    what.nanoseconds = limit.until().never() ? ~std::uint64_t{0} : static_cast<std::uint64_t>(allowed.count());
    failure cause = platform::send_all(socket_.get(), detail::encode_head(what, key, value.size()), limit);
    if (!cause) cause = platform::send_all(socket_.get(), value, limit);
    answer result;
    if (!cause) {
      // The server enforces the deadline, because it knows which ranks are missing; its answer arrives a little later.
      cause = await_answer(key, result, limit.later_by(std::chrono::milliseconds(500)));
    } else if (cause.code == errc::peer_lost) {
      read_last_message(cause);
    }
    if (cause) close_and_fail(operation, std::move(cause), allowed);
    return result;
  }

  failure await_answer(std::string_view key, answer& result, const wait_limit& limit) {
    failure cause = platform::wait_ready(socket_.get(), POLLIN, limit);
    if (cause.code == errc::aborted) return cancel(key);
    if (!cause) cause = receive_answer(result, limit);
    if (cause.code == errc::aborted && !answered_) send_last_word(detail::request_kind::cancel);
    return cause;
  }

  /// Cancels the request at the server, which knows best which ranks it waited for and gets 3 ms to answer.
  failure cancel(std::string_view key) {
    send_last_word(detail::request_kind::cancel);
    answer ignored;
    failure cause = receive_answer(ignored, deadline::after(std::chrono::milliseconds(3)));
    answered_ = false;  // nothing more can be asked
    if (cause.code == errc::aborted) return cause;
    return make_failure(errc::aborted,
                        hocket::detail::concat({"start-up was cancelled: '", key, "' was not complete"}));
  }

  /// Reads why the server has ended, if it has sent a reason.
  void read_last_message(failure& cause) {
    answer ignored;
    failure reply_failure = receive_answer(ignored, deadline::after(std::chrono::milliseconds(10)));
    if (answered_ && reply_failure) {
      cause = std::move(reply_failure);
    } else {
      answered_ = false;
    }
  }

  /// Raises `cause`, and closes the connection unless the server has answered: its state is unknown otherwise.
  [[noreturn]] void close_and_fail(const char* operation, failure cause, std::chrono::nanoseconds allowed) {
    if (!answered_) {
      socket_.reset();
      if (cause.code == errc::timeout) {
        cause.reason = "rank 0, which serves the store, has not answered after " + platform::seconds_text(allowed);
      }
      if (cause.code == errc::peer_lost) cause.reason = "rank 0, which serves the store, is gone: " + cause.reason;
      if (cause.code != errc::aborted) cause.context.peer = 0;
    }
    fail(operation, cause, cause.context.peer);
  }

  failure receive_answer(answer& result, const wait_limit& limit) {
    std::array<std::byte, detail::reply_size> head;
    if (failure cause = platform::receive_all(socket_.get(), head, limit)) return cause;
    detail::blob_reader reader(head);
    const auto status = reader.integer<std::uint32_t>();
    const auto peer = reader.integer<std::int32_t>();
    const auto size = reader.integer<std::uint64_t>();
    result.number = reader.integer<std::int64_t>();
    const std::uint64_t most = static_cast<std::uint64_t>(options_.ranks) * (detail::max_blob_size + sizeof size);
    if (size > most) return nonsense();
    if (failure cause = receive_body(size, result.body, limit)) return cause;
    answered_ = true;
    if (status == 0) return {};
    if (status == detail::status_server_closing)
      return make_failure(errc::unreachable, "the store there is shutting down");
    if (status > static_cast<std::uint32_t>(errc::system)) return nonsense();
    return detail::reported_failure(status, peer, blob_text(result.body), options_.ranks);
  }

  /// Allocates memory as the bytes arrive, because the announced size may be wrong.
  failure receive_body(std::uint64_t size, blob& body, const wait_limit& limit) const {
    constexpr std::uint64_t most_at_once = std::uint64_t{1} << 20;
    while (body.size() < size) {
      const std::size_t begin = body.size();
      body.resize(begin + static_cast<std::size_t>(std::min(most_at_once, size - begin)));
      if (failure cause = platform::receive_all(socket_.get(), std::span(body).subspan(begin), limit)) return cause;
    }
    return {};
  }

  static failure nonsense() { return make_failure(errc::mismatch, "rank 0 sent an invalid answer"); }

  [[noreturn]] void fail(const char* operation, failure cause, int peer = -1) const {
    if (peer < 0) peer = cause.context.peer;
    cause.context = detail::store_context(operation, options_.rank, options_.ranks, peer);
    raise(std::move(cause));
  }

  void send_goodbye() noexcept {
    if (!socket_) return;
    send_last_word(detail::request_kind::goodbye);
    socket_.reset();
  }

  void send_last_word(detail::request_kind kind) noexcept {
    detail::request word;
    word.kind = kind;
    const blob message = detail::encode_head(word, {}, 0);
    ::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  std::string place() const { return platform::endpoint_text(options_.host, options_.port); }

  tcp_store_options options_;
  std::unique_ptr<detail::tcp_server> server_;
  platform::file_descriptor own_;  ///< rank 0's connection to its own server, until it is used
  platform::file_descriptor socket_;
  bool answered_ = false;
  bool closed_ = false;  ///< the last attempt to connect found no server, or one that closed the connection
};

}  // namespace bootstrap

HOCKET_END_NAMESPACE
