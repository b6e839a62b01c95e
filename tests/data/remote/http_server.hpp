// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An HTTP server for tests, which answers each request as the test's handler does: rightly, wrongly or never. It listens
/// on a port of this host that the kernel chooses; each connection has a thread.
#pragma once

#include "support/catch.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace http_test {

/// A request, with the names of its fields in lower case.
struct request {
  int number = 0;  ///< from 1, over all connections
  std::string method, path, text;
  std::map<std::string, std::string> fields;
  std::uint64_t first = 0, last = 0;  ///< of the field Range; whole files are not requested

  std::string field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  }
};

/// The server's end of a connection.
class connection {
 public:
  explicit connection(int socket) : socket_(socket) {}

  /// Returns whether the peer may still receive.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  /// Returns when the peer or the server has closed the connection.
  void wait_until_closed() const {
    char ignored[4096];
    while (::recv(socket_, ignored, sizeof ignored, 0) > 0) {}
  }

  /// Returns the header of the next request; empty if there is none.
  std::string receive_header() const {
    std::string text;
    char next = 0;
    while (!text.ends_with("\r\n\r\n") && ::recv(socket_, &next, 1, 0) == 1) text += next;
    return text.ends_with("\r\n\r\n") ? text : std::string();
  }

 private:
  int socket_;
};

/// Answers a request; returns whether the connection stays open.
using handler = std::function<bool(const request&, const connection&)>;

class server {
 public:
  explicit server(handler answer) : answer_(std::move(answer)), listener_(listen()) {
    accepting_ = std::thread([this] { accept_all(); });
  }
  server(const server&) = delete;
  server& operator=(const server&) = delete;
  ~server() {
    ends_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    {
      const std::scoped_lock lock(mutex_);
      for (const int each : sockets_) ::shutdown(each, SHUT_RDWR);
    }
    for (std::thread& each : threads_) each.join();
    for (const int each : sockets_) ::close(each);
    ::close(listener_);
  }

  std::string url(const std::string& path = "/file") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  int requests() const { return requests_; }
  int connections() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(sockets_.size());
  }
  bool ends() const { return ends_; }

 private:
  int listen() {
    const int result = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(result, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(result, 64) == 0);
    REQUIRE(::getsockname(result, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    port_ = ntohs(at.sin_port);
    return result;
  }

  void accept_all() {
    while (true) {
      const int accepted = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted < 0) return;
      const std::scoped_lock lock(mutex_);
      sockets_.push_back(accepted);
      threads_.emplace_back([this, accepted] { serve(accepted); });
    }
  }

  void serve(int socket) {
    const connection peer(socket);
    for (std::string text = peer.receive_header(); !text.empty(); text = peer.receive_header()) {
      request got = parsed(text);
      got.number = ++requests_;
      if (!answer_(got, peer)) break;
    }
    ::shutdown(socket, SHUT_RDWR);  // closed by the destructor, so that the number is not used again before
  }

  static std::uint64_t number(std::string_view digits) {
    std::uint64_t result = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), result);
    return result;
  }

  static request parsed(const std::string& text) {
    request result;
    result.text = text;
    const std::string_view line(text.data(), text.find("\r\n"));
    const std::size_t space = line.find(' ');
    result.method = line.substr(0, space);
    result.path = line.substr(space + 1, line.rfind(' ') - space - 1);
    for (std::size_t at = line.size() + 2; at + 2 < text.size();) {
      const std::size_t end = text.find("\r\n", at);
      const std::size_t colon = text.find(": ", at);
      std::string name = text.substr(at, colon - at);
      for (char& c : name) c = 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      result.fields[name] = text.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    const std::string range = result.field("range");  // bytes=0-9
    if (const std::size_t dash = range.find('-'); range.starts_with("bytes=") && dash != range.npos) {
      result.first = number(std::string_view(range).substr(6, dash - 6));
      result.last = number(std::string_view(range).substr(dash + 1));
    }
    return result;
  }

  handler answer_;
  int port_ = 0;
  int listener_;
  std::atomic<bool> ends_{false};
  std::atomic<int> requests_{0};
  std::thread accepting_;
  mutable std::mutex mutex_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
};

/// A file that a server has.
struct version {
  std::string bytes;
  std::string fields = "ETag: \"one\"\r\n";  ///< that identify it
};

/// Returns the text of a header and a body.
inline std::string answer_text(const std::string& status, const std::string& fields, std::string_view body) {
  return "HTTP/1.1 " + status + "\r\n" + fields + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

inline std::string range_field(std::uint64_t first, std::uint64_t last, const std::string& total) {
  return "Content-Range: bytes " + std::to_string(first) + "-" + std::to_string(last) + "/" + total + "\r\n";
}

/// Answers as a server that does it right.
inline bool serve_range(const version& file, const request& asked, const connection& to) {
  if (asked.method == "HEAD")
    return to.send("HTTP/1.1 200 OK\r\n" + file.fields + "Content-Length: " + std::to_string(file.bytes.size()) +
                   "\r\n\r\n");
  if (asked.first >= file.bytes.size())
    return to.send(answer_text("416 Range Not Satisfiable",
                               "Content-Range: bytes */" + std::to_string(file.bytes.size()) + "\r\n", ""));
  const std::uint64_t last = std::min<std::uint64_t>(asked.last, file.bytes.size() - 1);
  return to.send(answer_text("206 Partial Content",
                             file.fields + range_field(asked.first, last, std::to_string(file.bytes.size())),
                             std::string_view(file.bytes).substr(asked.first, last - asked.first + 1)));
}

}  // namespace http_test
