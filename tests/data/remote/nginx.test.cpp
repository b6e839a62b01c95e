// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files that nginx serves: each range, and a file that is replaced while it is read.
// needs: curl
#include "data/remote/remote_reads.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <hocket/data/remote/curl.hpp>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

namespace {

using namespace http_test;
using hocket::data::http_source;
using hocket::data::remote_file;

/// Returns a port that was free just now.
int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  ::close(socket);
  return ntohs(at.sin_port);
}

/// Returns the program; empty if it is not installed.
std::string nginx_program() {
  for (const char* const path : {"/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

/// nginx as a child, which serves a folder.
class nginx {
 public:
  nginx(const std::string& program, const hocket_test::scratch_directory& scratch, const std::string& folder,
        const std::string& more = {}, const std::string& listens = {})
      : port_(free_port()) {
    std::string paths;
    for (const char* const each : {"client_body", "proxy", "fastcgi", "uwsgi", "scgi"})
      paths += std::string(each) + "_temp_path " + scratch.path() + ";\n";
    scratch.write("nginx.conf", "daemon off;\nmaster_process off;\npid " + scratch.path() +
                                    "/pid;\nerror_log stderr emerg;\nevents {}\nhttp {\naccess_log off;\n" + paths +
                                    "server {\nlisten 127.0.0.1:" + std::to_string(port_) + listens + ";\nroot " +
                                    folder + ";\nlocation /dated/ { etag off; alias " + folder + "/; }\n" + more +
                                    "}\n}\n");
    const std::string configuration = scratch.path() + "/nginx.conf";
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      ::execl(program.c_str(), program.c_str(), "-p", scratch.path().c_str(), "-c", configuration.c_str(), nullptr);
      ::_exit(127);
    }
  }
  nginx(const nginx&) = delete;
  nginx& operator=(const nginx&) = delete;
  ~nginx() {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  std::string url(const std::string& path, const std::string& scheme = "http") const {
    return scheme + "://127.0.0.1:" + std::to_string(port_) + path;
  }

 private:
  int port_;
  pid_t child_ = -1;
};

}  // namespace

TEST_CASE("ranges are read from nginx") {
  const std::string program = nginx_program();
  if (program.empty()) {
    std::puts("skipped: reading from nginx, which is not installed (apt-get install nginx-light)");
    return;
  }
  const hocket_test::scratch_directory scratch;
  const std::string folder = scratch.path() + "/files";
  std::filesystem::create_directory(folder);
  const std::string bytes = random_bytes(3'000'000, 11);
  scratch.write("files/shard.tar", bytes);
  scratch.write("files/empty", "");
  const nginx tested(program, scratch, folder);
  auto options = quick_options();
  options.attempts = 100;  // until it has started
  options.longest_pause = std::chrono::milliseconds(100);
  http_source web(options);

  for (const std::string path : {"/shard.tar", "/dated/shard.tar"}) {
    INFO(path);
    remote_file found;
    REQUIRE(web.describe(tested.url(path), found).reason == "");
    CHECK(found.bytes == bytes.size());
    CHECK(hocket::data::detail::is_strong_etag(found.version) == (path == "/shard.tar"));
    CHECK(hocket_test::contains(found.version, "GMT") == (path != "/shard.tar"));
    std::string all;
    for (std::uint64_t at = 0; at < found.bytes; at += 700'001) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(700'001, found.bytes - at));
      const read_result got = read_bytes(web, found, at, size);
      CHECK(got.cause.reason == "");
      all += got.bytes;
    }
    CHECK((all == bytes));
    CHECK((read_bytes(web, found, found.bytes - 1, 1).bytes == bytes.substr(bytes.size() - 1)));

    // The same length, at another time.
    const auto before = std::filesystem::last_write_time(folder + "/shard.tar");
    scratch.write("files/new", random_bytes(bytes.size(), 12));
    std::filesystem::last_write_time(folder + "/new", before + std::chrono::seconds(5));
    std::filesystem::rename(folder + "/new", folder + "/shard.tar");
    const read_result got = read_bytes(web, found, 0, 1000);
    CHECK(got.cause.code == hocket::errc::corrupted);
    CHECK(hocket_test::contains(got.cause.reason, "the file has changed: version " + found.version));
    scratch.write("files/shard.tar", bytes);
  }

  remote_file found;
  CHECK(web.describe(tested.url("/empty"), found).reason == "");
  CHECK(found.bytes == 0);
  CHECK(hocket_test::contains(web.describe(tested.url("/none"), found).reason, "status 404"));
}

TEST_CASE("certificates are checked, and no redirection leaves TLS") {
  const std::string program = nginx_program();
  const hocket_test::scratch_directory scratch;
  const std::string key = scratch.path() + "/key.pem";
  const std::string certificate = scratch.path() + "/certificate.pem";
  const std::string make =
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext "
      "subjectAltName=IP:127.0.0.1 -keyout " +
      key + " -out " + certificate + " 2>/dev/null";
  if (program.empty() || std::system(make.c_str()) != 0) {
    std::puts("skipped: reading by HTTPS, because there is no nginx, or no openssl that makes a certificate");
    return;
  }
  scratch.write("file", "0123456789");
  const nginx tested(program, scratch, scratch.path(),
                     "ssl_certificate " + certificate + ";\nssl_certificate_key " + key +
                         ";\nlocation /leaves { return 302 http://127.0.0.1:1/file; }\n"
                         "location /stays { return 302 https://$http_host/file; }\n",
                     " ssl");
  auto options = quick_options();
  options.attempts = 100;
  options.longest_pause = std::chrono::milliseconds(100);
  options.ca_file = certificate;
  http_source web(options);
  remote_file found;
  for (const std::string path : {"/file", "/stays"}) {
    REQUIRE(web.describe(tested.url(path, "https"), found).reason == "");
    CHECK(read_bytes(web, found, 2, 5).bytes == "23456");
  }

  const hocket::failure leaves = web.describe(tested.url("/leaves", "https"), found);
  CHECK(leaves.code == hocket::errc::unreachable);
  CHECK(hocket_test::contains(leaves.reason, "rotocol"));
  CHECK(!hocket_test::contains(leaves.reason, "attempt"));

  http_source strict(quick_options());
  const hocket::failure unknown = strict.describe(tested.url("/file", "https"), found);
  CHECK(unknown.code == hocket::errc::unreachable);
  CHECK(hocket_test::contains(unknown.reason, "certificate"));
  CHECK(!hocket_test::contains(unknown.reason, "attempt"));
}
