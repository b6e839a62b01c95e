// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The server of the TCP store: one background thread around `rendezvous`, ended and joined by the destructor.
///
/// Any program may connect to an open port. So the server serves no client before a hello with the right token. It
/// closes a connection at the first wrong byte, or after 5 s without a hello, and closes the oldest one without a hello
/// if there are too many. A started message must be complete, and an answer received, within 30 s.
#pragma once

#include <hocket/bootstrap/rendezvous.hpp>
#include <hocket/bootstrap/tcp_protocol.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/socket.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap::detail {

/// Limits that the server imposes on clients.
struct server_limits {
  std::chrono::nanoseconds hello = std::chrono::seconds(5);     ///< from the connection to the end of the hello
  std::chrono::nanoseconds message = std::chrono::seconds(30);  ///< from the first byte of a message to its last
  std::size_t strangers = 256;                                  ///< most connections without a hello
  /// Time that the ending server waits for missing ranks if a rank was lost or two contradict each other: a rank that
  /// connects too late to learn of that would report rank 0 as the lost one.
  std::chrono::nanoseconds late_ranks = std::chrono::milliseconds(200);
};

/// The server's side of one client: receives and sends bytes without blocking.
struct server_connection {
  platform::file_descriptor socket;
  std::chrono::nanoseconds message_timeout{};
  deadline until;  ///< when the hello, the message or the answer under way must be done
  int rank = -1;   ///< -1 until the hello is accepted
  bool awaiting_answer = false;
  leave_kind left_by = leave_kind::lost;
  bool close_when_sent = false;
  bool broken = false;
  blob in;
  blob head;
  std::shared_ptr<const blob> body;
  std::size_t sent = 0;

  bool sending() const noexcept { return sent < head.size() + (body ? body->size() : 0); }

  void receive() {
    std::array<std::byte, 65536> chunk;
    const ssize_t size = ::recv(socket.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (size > 0) {
      if (in.empty() && rank >= 0) until = deadline::after(message_timeout);
      append_bytes(in, byte_view(chunk.data(), static_cast<std::size_t>(size)));
      // A well-behaved client sends one request and waits for its answer.
      if (awaiting_answer && in.size() > request_size) broken = true;
    } else if (size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      broken = true;
    }
  }

  void consume(std::size_t size) {
    in.erase(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(size));
    if (rank >= 0) until = in.empty() ? deadline() : deadline::after(message_timeout);
  }

  void answer(const reply& what, blob front = {}) {
    head = std::move(front);
    append_bytes(head, encode_head(what));
    body = what.body;
    sent = 0;
    awaiting_answer = false;
    until = deadline::after(message_timeout);
    flush();
  }

  void flush() {
    while (sending() && !broken) {
      const bool in_head = sent < head.size();
      const byte_view rest = in_head ? byte_view(head).subspan(sent) : byte_view(*body).subspan(sent - head.size());
      const ssize_t size = ::send(socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (size <= 0) {
        broken = true;
        return;
      }
      sent += static_cast<std::size_t>(size);
    }
    if (broken) return;
    if (close_when_sent) broken = true;
    body.reset();
    head.clear();
    sent = 0;
    until = in.empty() ? deadline() : deadline::after(message_timeout);
  }
};

/// Serves on a listening socket until it is destroyed. The destructor sends pending answers, for at most 2 s (2 ms if
/// rank 0 cancelled start-up). If start-up has failed, it sends the failure to every rank, which reads it as the answer
/// to its next request. So it waits for no rank, except up to 200 ms for ranks that have not joined if a rank was lost
/// or contradicted another.
class tcp_server {
 public:
  /// @param own a connected socket whose other end rank 0 has; may be empty
  tcp_server(platform::file_descriptor listener, int ranks, std::string token, const server_limits& limits = {},
             platform::file_descriptor own = {})
      : listener_(std::move(listener)), limits_(limits), wake_(platform::make_pipe()),
        rendezvous_(ranks, std::move(token)) {
    platform::set_nonblocking(listener_.get());
    if (own) add_client(std::move(own));
    start();
  }

  tcp_server(const tcp_server&) = delete;
  tcp_server& operator=(const tcp_server&) = delete;

  ~tcp_server() {
    stopping_.store(true);
    wake_.write.reset();
    thread_.join();
  }

  platform::socket_address address() const noexcept { return platform::local_address(listener_.get()); }

 private:
  /// Starts the thread with all signals blocked, so that the program's own threads receive them.
  void start() {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const failure cause = start_thread();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (cause) raise(cause);
  }

  failure start_thread() {
#if HOCKET_HAS_EXCEPTIONS
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& cause) {
      return make_failure(errc::system, std::string("cannot start the thread of the store's server: ") + cause.what());
    }
#else
    thread_ = std::thread([this] { run(); });
#endif
    return {};
  }

  void run() {
    while (!stopping_.load()) {
      wait_and_serve(next_deadline(), wake_.read.get());
      expire();
    }
    for (int round = 0; round < 3; ++round) wait_and_serve(deadline::after({}), -1);  // serve what has arrived by now
    const deadline late = deadline::after(limits_.late_ranks);
    while (rendezvous_.must_wait_to_report_failure() && !late.passed()) wait_and_serve(late, -1);
    rendezvous_.close();
    deliver();
    flush_all();
    if (rendezvous_.first_failure().status == 0) return;
    for (const auto& each : connections_) {
      if (each->rank >= 0 && !each->broken && !each->sending()) each->answer(rendezvous_.first_failure());
    }
  }

  deadline next_deadline() const noexcept {
    deadline next = rendezvous_.next_deadline();
    for (const auto& each : connections_) {
      if (each->until.when() < next.when()) next = each->until;
    }
    if (pause_accept_until_.when() < next.when()) next = pause_accept_until_;
    return next;
  }

  static int poll_timeout(deadline until) noexcept {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.left());
    return static_cast<int>(std::min<std::int64_t>(left.count(), 3600000));
  }

  /// `wake`: descriptor that ends the wait once the server must stop; -1 if it is already stopping.
  void wait_and_serve(deadline until, int wake) {
    polled_.clear();
    polled_.push_back({wake, POLLIN, 0});
    polled_.push_back({accepts() ? listener_.get() : -1, POLLIN, 0});
    for (const auto& each : connections_) {
      polled_.push_back({each->socket.get(), static_cast<short>(each->sending() ? POLLIN | POLLOUT : POLLIN), 0});
    }
    if (::poll(polled_.data(), polled_.size(), poll_timeout(until)) <= 0) return;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const short events = polled_[i + 2].revents;
      server_connection& each = *connections_[i];
      if ((events & POLLOUT) != 0) each.flush();
      if ((events & ~POLLOUT) != 0) each.receive();
    }
    handle_leaving_ranks();
    for (const auto& each : connections_) serve(*each);
    deliver();
    remove_broken();
    if (polled_[1].revents != 0 && accepts()) accept_some();
  }

  /// False once all ranks have joined and one has left: the next connection is meant for the next server of this
  /// socket, and would end with this one.
  bool accepts() const noexcept {
    return pause_accept_until_.never() && !(one_has_left_ && rendezvous_.all_ranks_accounted_for());
  }

  void serve(server_connection& client) {
    while (!client.broken && !client.sending() && !client.in.empty()) {
      if (client.awaiting_answer) return read_last_message(client);  // it may have arrived with the request
      if (!(client.rank < 0 ? serve_hello(client) : serve_request(client))) return;
    }
  }

  /// Handles leaving ranks first. Otherwise a rank that has cancelled could still complete a gathering of the others,
  /// and a rank that has left and joins again would be refused as its own duplicate.
  void handle_leaving_ranks() {
    for (const auto& each : connections_) {
      if (each->rank >= 0 && !each->in.empty() && !each->broken && !each->sending()) read_last_message(*each);
    }
    remove_broken();
  }

  void read_last_message(server_connection& client) {
    request what;
    std::size_t size = 0;
    const bool whole = decode(client.in, what, size) == decoded::complete;
    if (whole && is_leave_request(what.kind)) part(client, what.kind);
  }

  /// Returns false if more bytes are needed or the connection ends.
  bool serve_hello(server_connection& client) {
    hello greeting;
    std::size_t size = 0;
    const decoded how = decode(client.in, greeting, size);
    if (how == decoded::nonsense) client.broken = true;
    if (how != decoded::complete) return false;
    if (greeting.rank < 0) {
      rendezvous_.note_peer_failure(std::move(greeting));
      client.broken = true;
      return false;
    }
    const reply verdict = rendezvous_.greet(greeting, platform::remote_text(client.socket.get()));
    if (verdict.status == 0) client.rank = greeting.rank;
    client.close_when_sent = verdict.status != 0;
    client.consume(size);
    client.answer(verdict, encode_hello_answer());
    return true;
  }

  bool serve_request(server_connection& client) {
    request what;
    std::size_t size = 0;
    const decoded how = decode(client.in, what, size);
    if (how == decoded::nonsense) client.broken = true;
    if (how != decoded::complete) return false;
    client.consume(size);
    if (is_leave_request(what.kind)) {
      part(client, what.kind);
      return false;
    }
    client.awaiting_answer = true;
    rendezvous_.handle(client.rank, std::move(what));
    deliver();
    return true;
  }

  void part(server_connection& client, request_kind last_word) {
    if (last_word == request_kind::goodbye) {
      client.left_by = leave_kind::goodbye;
      client.broken = true;
      one_has_left_ = true;
    } else {
      client.left_by = leave_kind::cancelled;
      client.close_when_sent = true;
      client.answer(rendezvous_.cancel(client.rank));
    }
  }

  void deliver() {
    for (const rendezvous::answer& each : rendezvous_.take_answers()) {
      for (const auto& client : connections_) {
        if (client->rank == each.rank && !client->broken) client->answer(each.what);
      }
    }
  }

  /// Removes broken connections. The loss of one rank may fail waits of others, and the answers may reveal more losses.
  void remove_broken() {
    for (std::size_t i = 0; i < connections_.size();) {
      if (!connections_[i]->broken) {
        ++i;
        continue;
      }
      const std::unique_ptr<server_connection> gone = std::move(connections_[i]);
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
      if (gone->rank < 0) continue;
      read_last_word(*gone);
      rendezvous_.leave(gone->rank, gone->left_by);
      deliver();
      i = 0;
    }
  }

  /// Reads the last bytes of a lost client, which may contain the reason why it left.
  void read_last_word(server_connection& gone) {
    if (gone.left_by != leave_kind::lost) return;
    gone.receive();
    request what;
    std::size_t size = 0;
    const bool whole = decode(gone.in, what, size) == decoded::complete;
    if (whole && what.kind == request_kind::cancel) gone.left_by = leave_kind::cancelled;
    if (whole && what.kind == request_kind::goodbye) gone.left_by = leave_kind::goodbye;
  }

  void accept_some() {
    for (int i = 0; i < 64; ++i) {
      platform::file_descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        // Out of descriptors or memory: serve the other clients, and try again a little later.
        const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (exhausted) pause_accept_until_ = deadline::after(std::chrono::milliseconds(50));
        return;
      }
      platform::detail::tune_stream(socket.get());
      limit_strangers();
      add_client(std::move(socket));
    }
  }

  void add_client(platform::file_descriptor socket) {
    auto client = std::make_unique<server_connection>();
    client->socket = std::move(socket);
    client->message_timeout = limits_.message;
    client->until = deadline::after(limits_.hello);
    connections_.push_back(std::move(client));
  }

  /// Closes the oldest connection without a hello if there are too many of them.
  void limit_strangers() {
    std::size_t count = 0;
    std::size_t oldest = connections_.size();
    for (std::size_t i = connections_.size(); i-- > 0;) {
      if (connections_[i]->rank >= 0) continue;
      oldest = i;
      ++count;
    }
    if (count >= limits_.strangers) connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(oldest));
  }

  void expire() {
    const auto now = deadline::clock::now();
    if (pause_accept_until_.passed(now)) pause_accept_until_ = deadline();
    for (const auto& each : connections_) {
      if (each->until.passed(now)) each->broken = true;
    }
    rendezvous_.expire(now);
    deliver();
    remove_broken();
  }

  bool owes_answers() const noexcept {
    for (const auto& each : connections_) {
      if (each->sending() && !each->broken) return true;
    }
    return false;
  }

  void flush_all() {
    const reply& failed = rendezvous_.first_failure();
    const bool expedited = failed.status == static_cast<std::uint32_t>(errc::aborted) && failed.peer == 0;
    const deadline patience = deadline::after(expedited ? std::chrono::milliseconds(2) : std::chrono::seconds(2));
    while (owes_answers() && !patience.passed()) flush_some(patience);
  }

  void flush_some(deadline until) {
    polled_.clear();
    for (const auto& each : connections_) {
      if (each->sending() && !each->broken) polled_.push_back({each->socket.get(), POLLOUT, 0});
    }
    ::poll(polled_.data(), polled_.size(), poll_timeout(until));
    for (const auto& each : connections_) {
      if (each->sending()) each->flush();
    }
  }

  platform::file_descriptor listener_;
  server_limits limits_;
  platform::pipe_ends wake_;
  rendezvous rendezvous_;
  std::vector<std::unique_ptr<server_connection>> connections_;
  std::vector<pollfd> polled_;
  deadline pause_accept_until_;
  bool one_has_left_ = false;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace bootstrap::detail

HOCKET_END_NAMESPACE
