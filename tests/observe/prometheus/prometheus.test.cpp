// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What Prometheus reads from a registry, by the text itself, by promtool and by Prometheus' client library.
// needs: prometheus
#include "observe/refusal.hpp"
#include "observe/shell.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/observe/prometheus.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace hocket::observe;
using hocket_test::read_file;
using hocket_test::scratch_directory;
using observe_test::output_of;
using observe_test::refusal_of;

/// Adds metrics of each kind, with each character that must be escaped.
void add_metrics(registry& metrics) {
  metrics.counter("sent_bytes", "sent\nbytes \\ all", {{"peer", "a\"b\\c\nd"}}).add(4096);
  metrics.counter("sent_bytes", "sent\nbytes \\ all", {{"peer", "\u00e4"}}).add(1e15);
  metrics.gauge("loss", "training loss in nats").set(-0.125);
  metrics.gauge("norm", "norm of the gradient").set(std::numeric_limits<double>::infinity());
  histogram& seconds = metrics.histogram("step_seconds", "duration of a step in seconds", {0.5, 1});
  for (const double each : {0.25, 0.5, 0.75, 4.0}) seconds.record(each);
}

const std::string expected =
    "# HELP loss training loss in nats\n"
    "# TYPE loss gauge\n"
    "loss{rank=\"3\"} -0.125\n"
    "# HELP norm norm of the gradient\n"
    "# TYPE norm gauge\n"
    "norm{rank=\"3\"} +Inf\n"
    "# HELP sent_bytes_total sent\\nbytes \\\\ all\n"
    "# TYPE sent_bytes_total counter\n"
    "sent_bytes_total{peer=\"a\\\"b\\\\c\\nd\",rank=\"3\"} 4096\n"
    "sent_bytes_total{peer=\"\u00e4\",rank=\"3\"} 1000000000000000\n"
    "# HELP step_seconds duration of a step in seconds\n"
    "# TYPE step_seconds histogram\n"
    "step_seconds_count{rank=\"3\"} 4\n"
    "step_seconds_sum{rank=\"3\"} 5.5\n"
    "step_seconds_bucket{rank=\"3\",le=\"0.5\"} 2\n"
    "step_seconds_bucket{rank=\"3\",le=\"1\"} 3\n"
    "step_seconds_bucket{rank=\"3\",le=\"+Inf\"} 4\n";

/// Returns a connection to a server on this host; -1 if there is none.
int connection_to(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return socket;
  ::close(socket);
  return -1;
}

/// Returns the answer of a server on this host to a request for its metrics.
std::string answer_of(int port) {
  const int socket = connection_to(port);
  std::string result;
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (socket >= 0 && ::send(socket, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
    std::array<char, 4096> piece{};
    for (ssize_t count = 1; count > 0;) {
      count = ::recv(socket, piece.data(), piece.size(), 0);
      if (count > 0) result.append(piece.data(), static_cast<std::size_t>(count));
    }
  }
  ::close(socket);
  return result;
}

/// Waits until `condition` holds; false if that takes too long.
template <class Condition>
bool comes(Condition condition) {
  for (int i = 0; i < 400; ++i) {
    if (condition()) return true;
    ::usleep(50'000);
  }
  return false;
}

}  // namespace

TEST_CASE("metrics in the text format of Prometheus") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/a.prom";
  registry metrics;
  add_metrics(metrics);
  write_textfile(path, metrics, {{"rank", "3"}});
  CHECK(read_file(path) == expected);
  metrics.gauge("loss", "training loss in nats").set(7);
  write_textfile(path, metrics, {{"rank", "3"}});
  CHECK(read_file(path).find("loss{rank=\"3\"} 7\n") != std::string::npos);
  CHECK(scratch.names() == std::vector<std::string>{"a.prom"});
}

TEST_CASE("a metric's own label does not hide the label that distinguishes registries") {
  registry one, other;
  one.gauge("size", "bytes", {{"rank", "1"}}).set(5);
  other.gauge("size", "bytes", {{"rank", "1"}}).set(6);
  one.gauge("both", "bytes", {{"exported_rank", "a"}, {"rank", "b"}}).set(7);
  prometheus_collectable all;
  all.add(one, {{"rank", "0"}});
  all.add(other, {{"rank", "1"}});
  const std::string text = prometheus_text(all);
  INFO(text);
  CHECK(text.find("size{exported_rank=\"1\",rank=\"0\"} 5\n") != std::string::npos);
  CHECK(text.find("size{exported_rank=\"1\",rank=\"1\"} 6\n") != std::string::npos);
  CHECK(text.find("both{exported_rank=\"a\",exported_exported_rank=\"b\",rank=\"0\"} 7\n") != std::string::npos);
}

TEST_CASE("threads that write one file all succeed, and leave no other file") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/a.prom";
  registry metrics;
  add_metrics(metrics);
  std::atomic<int> failures{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 3; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        try {
          write_textfile(path, metrics, {{"rank", "3"}});
        } catch (const hocket::error&) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& each : all) each.join();
  CHECK(failures == 0);
  CHECK(read_file(path) == expected);
  CHECK(scratch.names() == std::vector<std::string>{"a.prom"});
}

TEST_CASE("promtool and Prometheus' client library accept the text") {
  const scratch_directory scratch;
  const std::string path = scratch.path() + "/a.prom";
  registry metrics;
  add_metrics(metrics);
  write_textfile(path, metrics, {{"rank", "3"}});
  if (observe_test::succeeds("command -v promtool")) {
    CHECK(output_of("promtool check metrics < " + path + " && echo accepted") == "accepted\n");
  } else {
    WARN("left out: promtool is not installed");
  }
  if (observe_test::succeeds("python3 -c 'import prometheus_client'")) {
    scratch.write("read.py",
                  "import sys\n"
                  "from prometheus_client.parser import text_string_to_metric_families as read\n"
                  "for f in read(open(sys.argv[1], newline='').read()):\n"
                  "  print(f.name, f.type, len(f.samples), sorted(float(s.value) for s in f.samples)[-1])\n"
                  "  if f.name == 'sent_bytes': print([f.documentation, f.samples[0].labels['peer']])\n");
    CHECK(output_of("python3 " + scratch.path() + "/read.py " + path) ==
          "loss gauge 1 -0.125\nnorm gauge 1 inf\nsent_bytes counter 2 1000000000000000.0\n"
          "['sent\\nbytes \\\\ all', 'a\"b\\\\c\\nd']\nstep_seconds histogram 5 5.5\n");
  } else {
    WARN("left out: there is no python3 with prometheus_client");
  }
}

TEST_CASE("an endpoint serves the metrics of several registries, each name once") {
  registry metrics, others;
  add_metrics(metrics);
  others.gauge("loss", "training loss in nats").set(2);
  others.gauge("rank_of_peer", "a rank", {{"rank", "9"}}).set(1);
  others.counter("norm", "the name of a gauge of the first registry").add();
  prometheus_endpoint endpoint("127.0.0.1:0", metrics, {.local_rank = 5, .constant = {{"rank", "3"}}});
  std::string answer = answer_of(endpoint.port());
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.find(expected.substr(0, expected.find("# HELP norm"))) != std::string::npos);
  CHECK(answer.find(expected.substr(expected.find("# HELP sent_bytes"))) != std::string::npos);
  endpoint.add(others, {{"rank", "4"}});
  answer = answer_of(endpoint.port());
  CHECK(answer.find("# TYPE loss gauge\nloss{rank=\"3\"} -0.125\nloss{rank=\"4\"} 2\n") != std::string::npos);
  CHECK(answer.find("rank_of_peer{exported_rank=\"9\",rank=\"4\"} 1\n") != std::string::npos);
  CHECK(answer.find("# TYPE loss", answer.find("# TYPE loss") + 1) == std::string::npos);
  CHECK(
      refusal_of([&] {
        endpoint.add(others, {{"rank", "4"}});
      }) ==
      "labels of a registry: another registry has the same labels: add one that distinguishes them, such as {\"rank\", "
      "\"1\"}");
  CHECK(refusal_of([&] {
          endpoint.add(others, {{"r-r", "4"}});
        }).starts_with("labels of a registry: the label \"r-r\""));
}

TEST_CASE("processes of a host share one endpoint, from which those that have died disappear") {
  const scratch_directory scratch;
  const std::string folder = scratch.path() + "/job";
  const auto results = hocket::launch::run_processes(
      3,
      [&](const hocket::bootstrap::world_description& where) {
        registry metrics;
        add_metrics(metrics);
        metrics.gauge("loss", "training loss in nats").set(where.rank);
        const prometheus_endpoint endpoint(
            "127.0.0.1:0", metrics,
            {.local_rank = where.rank, .constant = {{"rank", std::to_string(where.rank)}}, .folder = folder});
        const std::string first = "loss{rank=\"0\"} 0\n", others = "loss{rank=\"1\"} 1\nloss{rank=\"2\"} 2\n";
        const auto serves = [&](const std::string& text) { return answer_of(endpoint.port()).find(text) != text.npos; };
        if (where.rank != 0) {
          if (endpoint.port() != 0) return 1;
          while (::access((scratch.path() + "/end").c_str(), F_OK) != 0) ::usleep(20'000);
          if (where.rank == 2) ::raise(SIGKILL);
          while (::access((scratch.path() + "/end_all").c_str(), F_OK) != 0) ::usleep(20'000);
          return 0;
        }
        if (!comes([&] { return serves("# TYPE loss gauge\n" + first + others); })) return 2;
        const std::string answer = answer_of(endpoint.port());
        scratch.write("all.prom", answer.substr(answer.find("\r\n\r\n") + 4));
        scratch.write("end", "");
        if (!comes([&] { return !serves("{rank=\"2\"}") && serves(first + "loss{rank=\"1\"} 1\n# HELP"); })) return 3;
        scratch.write("end_all", "");
        return comes([&] { return !serves("{rank=\"1\"}") && serves(first + "# HELP"); }) ? 0 : 4;
      },
      {.capture_output = true, .timeout = std::chrono::seconds(60), .directory = {}});
  CHECK(results.at(0).exit_code == 0);
  CHECK(results.at(1).exit_code == 0);
  CHECK(results.at(2).exit_code != 0);
  const std::string all = read_file(scratch.path() + "/all.prom");
  CHECK(all.find("# TYPE loss", all.find("# TYPE loss") + 1) == std::string::npos);
  if (observe_test::succeeds("command -v promtool")) {
    CHECK(output_of("promtool check metrics < " + scratch.path() + "/all.prom && echo accepted") == "accepted\n");
  } else {
    WARN("left out: promtool is not installed");
  }
  registry metrics;
  CHECK(refusal_of([&] { prometheus_endpoint("127.0.0.1:0", metrics, {.folder = folder}); }) ==
        "processes that share the endpoint 127.0.0.1:0 need constant labels that distinguish them, such as {\"rank\", "
        "\"1\"}");
}

TEST_CASE("metrics of one name that differ in kind between registries: those of the first") {
  registry one, other;
  one.histogram("x", "first", {1}).record(0.5);
  other.gauge("x", "second").set(1);
  prometheus_collectable all;
  all.add(one, {{"rank", "0"}});
  all.add(other, {{"rank", "1"}});
  CHECK(prometheus_text(all).find("rank=\"1\"") == std::string::npos);
  CHECK(prometheus_text(all).find("x_count{rank=\"0\"} 1\n") != std::string::npos);
}

TEST_CASE("clients that send nothing do not keep an endpoint from answering for long") {
  registry metrics;
  add_metrics(metrics);
  const prometheus_endpoint endpoint("127.0.0.1:0", metrics);
  std::vector<int> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(connection_to(endpoint.port()));
  const auto asked = std::chrono::steady_clock::now();
  CHECK(answer_of(endpoint.port()).starts_with("HTTP/1.1 200 OK\r\n"));
  // Prometheus waits for 10 s by default; the server of prometheus-cpp waits for 30 s for each of them.
  CHECK(std::chrono::steady_clock::now() - asked < std::chrono::seconds(10));
  for (const int each : silent) ::close(each);
}

TEST_CASE("an endpoint answers without the metrics of a registry that can't be read") {
  registry sound, failing;
  sound.gauge("loss", "training loss in nats").set(1);
  failing.before_read([] { throw std::runtime_error("this reading fails"); });
  prometheus_endpoint endpoint("127.0.0.1:0", failing, {.constant = {{"rank", "0"}}});
  endpoint.add(sound, {{"rank", "1"}});
  for (int i = 0; i < 2; ++i) CHECK(answer_of(endpoint.port()).find("loss{rank=\"1\"} 1\n") != std::string::npos);
}

TEST_CASE("an endpoint or a file that can't be had is an error that states what to do") {
  const scratch_directory scratch;
  registry metrics;
  const std::string form = ": write HOST:PORT, such as \"0.0.0.0:9400\", with a port from 0 to 65535";
  struct {
    std::string address;
    int local_rank;
    std::string reason;
  } const cases[] = {
      {"", 0, "the address \"\" with local rank 0" + form},
      {"localhost", 1, "the address \"localhost\" with local rank 1" + form},
      {"0.0.0.0:", 0, "the address \"0.0.0.0:\" with local rank 0" + form},
      {"0.0.0.0:94x", 0, "the address \"0.0.0.0:94x\" with local rank 0" + form},
      {"0.0.0.0:70000", 0, "the address \"0.0.0.0:70000\" with local rank 0" + form},
      {"0.0.0.0:9400", -1, "the address \"0.0.0.0:9400\" with local rank -1" + form},
      {"0.0.0.0:65530", 6, "port 65530 plus local rank 6 exceeds 65535: choose a lower port"},
  };
  for (const auto& each : cases)
    CHECK(refusal_of([&] { prometheus_endpoint(each.address, metrics, {.local_rank = each.local_rank}); }) ==
          each.reason);

  const prometheus_endpoint first("127.0.0.1:0", metrics);
  const std::string taken = "127.0.0.1:" + std::to_string(first.port() - 1);
  const std::string reason =
      refusal_of([&] { prometheus_endpoint(taken, metrics, {.local_rank = 1}); }, hocket::errc::system);
  CHECK(reason.starts_with("cannot serve metrics at 127.0.0.1:" + std::to_string(first.port()) + ": "));
  CHECK(reason.ends_with(". Choose a port that no other program uses, and an address of this host"));

  CHECK(refusal_of([&] { write_textfile(scratch.path() + "/none/a.prom", metrics); }, hocket::errc::system) ==
        "cannot write metrics to '" + scratch.path() +
            "/none/a.prom': name a file in a folder in which this process may create files: No such file or directory");
  CHECK(refusal_of([&] { write_textfile(scratch.path(), metrics); }, hocket::errc::system).ends_with("Is a directory"));
  CHECK(scratch.names().empty());
}
