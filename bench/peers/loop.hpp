// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loop that measures a library, the same for each. A rank connects to the driver's socket and executes its
/// commands; between commands it sleeps, so that the ranks of several libraries can share the cores in turn. Commands
/// are lines, and each answer is one line of JSON.
///
/// | command | meaning |
/// |---|---|
/// | `reserve BYTES CACHE` | allocate the buffers of this and smaller sizes; CACHE: bytes to cycle through, 0: warm |
/// | `measure CALL BYTES MICROSECONDS CHECK` | time both ways for about so long each; CHECK 1: verify the results, too |
/// | `quit` | end |
///
/// A library is a class with `rank`, `ranks`, `version`, `has(call)`, `allocate(count)`, which returns an owner of
/// elements, and a function for each call, which is not called if `has` returns false.
#pragma once

#include "board.hpp"
#include "call.hpp"
#include "processor.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace compare {

/// Returns uninitialised elements, aligned to a cache line.
inline std::shared_ptr<float[]> aligned_elements(std::size_t count) {
  constexpr std::size_t alignment = 64;
  const std::size_t bytes = (std::max<std::size_t>(count, 1) * sizeof(float) + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return {static_cast<float*>(memory), [](float* elements) { std::free(elements); }};
}

/// Connection to the driver.
class driver {
 public:
  explicit driver(const std::string& folder) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder + "/socket";
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::system_error(errno, std::generic_category(), path);
    }
  }
  driver(const driver&) = delete;
  driver& operator=(const driver&) = delete;
  ~driver() { ::close(socket_); }

  /// Sleeps until the next line arrives. Returns false if the driver has closed the connection.
  bool read(std::string& line) {
    line.clear();
    for (char next = 0; ::recv(socket_, &next, 1, 0) == 1;) {
      if (next == '\n') return true;
      line += next;
    }
    return false;
  }

  void answer(const std::string& json) {
    const std::string line = json + "\n";
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t now = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) throw std::system_error(errno, std::generic_category(), "answering the driver");
      sent += static_cast<std::size_t>(now);
    }
  }

 private:
  int socket_;
};

/// Returns the text in quotation marks, without characters that JSON does not allow.
inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') break;
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= ' ') result += c;
  }
  return result + "\"";
}

enum class timing { back_to_back, separated };

/// The median and the 99th percentile of samples in seconds, as JSON in microseconds.
inline std::string summary(std::span<double> samples, int batch) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    const double position = std::ceil(share * static_cast<double>(samples.size())) - 1;
    return 1e6 * samples[static_cast<std::size_t>(std::max(position, 0.0))];
  };
  char text[200];
  std::snprintf(text, sizeof text, R"({"median_us":%.6g,"p99_us":%.6g,"minimum_us":%.6g,"samples":%zu,"batch":%d})",
                at(0.5), at(0.99), at(0), samples.size(), batch);
  return text;
}

template <class Library>
class loop {
 public:
  loop(Library& library, const std::string& folder)
      : library_(library), board_(folder, library.rank(), library.ranks()), driver_(folder), values_(library.ranks()) {}

  int run() {
    driver_.answer(R"({"rank":)" + std::to_string(library_.rank()) + R"(,"process":)" + std::to_string(::getpid()) +
                   R"(,"version":)" + quoted(library_.version()) + "}");
    for (std::string line; driver_.read(line) && line != "quit";) {
      ::alarm(longest_command);  // ends a rank that waits for others that have failed, if the driver has ended
      try {
        driver_.answer(execute(line));
      } catch (const std::exception& problem) {
        driver_.answer(R"({"error":)" + quoted(problem.what()) + "}");
        return 1;
      }
      ::alarm(0);
    }
    return 0;
  }

 private:
  static constexpr unsigned longest_command = 300;
  // Long enough that the clock costs little, and that a root that is ahead of its receivers waits for them. Where ranks
  // share cores, most calls are fast and some wait for a time slice of milliseconds, so only a mean of many is the rate.
  static constexpr double shortest_sample = 10e-6;
  static constexpr double shortest_crowded_sample = 10e-3;
  static constexpr double least_samples = 3;

  std::string execute(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "reserve") {
      std::size_t bytes = 0;
      words >> bytes >> cache_;
      reserve(bytes);
      return "{}";
    }
    if (command != "measure") throw std::invalid_argument("unknown command '" + line + "'");
    std::string name;
    std::size_t bytes = 0;
    double microseconds = 0;
    int check = 0;
    words >> name >> bytes >> microseconds >> check;
    return measure(name, bytes, microseconds * 1e-6, check != 0);
  }

  void reserve(std::size_t bytes) {
    in_ = {};
    out_ = {};
    subject_ = subject(call::barrier, 0, library_.rank(), library_.ranks());
    capacity_ = std::max(bytes, cache_) / sizeof(float) + 16;
    if (cache_ > 0) capacity_ += bytes / sizeof(float);
    in_ = library_.allocate(capacity_);
    out_ = library_.allocate(capacity_);
  }

  std::string measure(const std::string& name, std::size_t bytes, double budget, bool check) {
    const call what = call_of(name);
    if (++measurements_ == 2) fail_on_purpose();
    if (!library_.has(what)) return R"({"missing":true})";
    const subject wanted(what, bytes, library_.rank(), library_.ranks());
    if (check || wanted != subject_) {
      subject_ = wanted;
      place_slots();
      for (std::size_t slot = 0; slot < slots_; ++slot) subject_.write(in(slot), out(slot));
    }
    std::size_t wrong = 0;
    if (check) {
      separate();
      run_once();
      if (spoils_ && subject_.has_result()) out(last_)[0] = -1000;
      wrong += wrong_elements();
      subject_.write(in(last_), out(last_));
    }
    std::string answer = "{";
    for (const timing way : {timing::back_to_back, timing::separated}) {
      answer += way == timing::back_to_back ? R"("back_to_back":)" : R"(,"separated":)";
      answer += time(name, bytes, budget, way);
    }
    if (check) wrong += wrong_elements();
    return answer + R"(,"wrong":)" + std::to_string(wrong) + "}";
  }

  /// Fails as HOCKET_COMPARE_FAULT requests, on the last rank, so that tests can check that the driver finds it.
  void fail_on_purpose() {
    const char* text = std::getenv("HOCKET_COMPARE_FAULT");
    const std::string fault = text == nullptr || library_.rank() + 1 != library_.ranks() ? "" : text;
    if (fault == "error") throw std::runtime_error("failed on purpose");
    if (fault == "exit") std::_Exit(3);
    if (fault == "stop") ::raise(SIGSTOP);
    spoils_ = fault == "wrong";
  }

  // ---- buffers ----

  /// Divides the buffers into slots. Warm: one. Cold: as many as fill the cache, visited in an order that processors
  /// do not predict.
  void place_slots() {
    stride_ = (subject_.count * sizeof(float) + 63) / 64 * 64 / sizeof(float);
    stride_ = std::max<std::size_t>(stride_, 16);
    slots_ = cache_ == 0 ? 1 : std::max<std::size_t>(2, capacity_ / stride_);
    slots_ = std::min(slots_, std::max<std::size_t>(1, capacity_ / stride_));
    step_ = slots_ * 5 / 8 | 1U;
    while (slots_ > 1 && gcd(step_, slots_) != 1) step_ += 2;
    slot_ = 0;
    last_ = 0;
  }
  static std::size_t gcd(std::size_t a, std::size_t b) { return b == 0 ? a : gcd(b, a % b); }

  std::span<float> in(std::size_t slot) const {
    return {in_.get() + slot * stride_, subject_.what == call::barrier ? 0 : subject_.in_count()};
  }
  std::span<float> out(std::size_t slot) const {
    return {out_.get() + slot * stride_, subject_.what == call::barrier ? 0 : subject_.out_count()};
  }
  std::size_t wrong_elements() const { return subject_.has_result() ? subject_.count_wrong(values_, out(last_)) : 0; }

  // ---- calls ----

  void run_once() {
    last_ = slot_;
    const float* from = in_.get() + slot_ * stride_;
    float* to = out_.get() + slot_ * stride_;
    slot_ += step_;
    if (slot_ >= slots_) slot_ %= slots_;
    const subject& what = subject_;
    switch (what.what) {
      case call::all_reduce: return library_.all_reduce(from, to, what.count);
      case call::reduce_scatter: return library_.reduce_scatter(from, to, what.block);
      case call::all_gather: return library_.all_gather(from, to, what.block);
      case call::all_to_all: return library_.all_to_all(from, to, what.block);
      case call::broadcast: return library_.broadcast(to, what.count);
      case call::reduce: return library_.reduce(from, to, what.count);
      case call::gather: return library_.gather(from, to, what.block);
      case call::scatter: return library_.scatter(from, to, what.block);
      case call::gather_v: return library_.gather_v(from, to, what.blocks);
      case call::scatter_v: return library_.scatter_v(from, to, what.blocks);
      case call::barrier: return library_.barrier();
      case call::ping_pong: return ping_pong(from, to);
      case call::exchange:
        if (what.partner() < what.ranks) library_.exchange(from, to, what.count, what.partner());
        return;
    }
  }

  void ping_pong(const float* from, float* to) {
    const int partner = subject_.partner();
    if (partner == subject_.ranks) return;
    if (partner > subject_.rank) library_.send(from, subject_.count, partner);
    library_.receive(to, subject_.count, partner);
    if (partner < subject_.rank) library_.send(from, subject_.count, partner);
  }

  /// The library's barrier completes what its calls may have left; then all ranks leave the board's at the same time.
  void separate() {
    library_.barrier();
    board_.sync();
  }

  // ---- timing ----

  std::string time(const std::string& name, std::size_t bytes, double budget, timing way) {
    auto [known, is_new] = durations_.try_emplace({name, bytes, way}, 0);
    double& duration = known->second;
    if (is_new) duration = calibrate(way);
    const int batch = way == timing::separated ? 1 : batch_of(duration);
    take_samples(0, static_cast<std::size_t>(std::clamp(0.1 * budget / duration, 1.0, 100.0)), 1, way);
    std::size_t count = 0;
    double elapsed = 0;
    double least = duration * batch;
    while (elapsed < budget && count < board::most_samples) {
      const double wanted = std::max(budget / 4 / least, least_samples);
      const std::size_t more =
          static_cast<std::size_t>(std::min(wanted, static_cast<double>(board::most_samples - count)));
      const double taken = take_samples(count, more, batch, way);
      least = std::min(least, taken / static_cast<double>(more));
      elapsed += taken;
      count += more;
    }
    duration = (board_.is_crowded() ? elapsed / static_cast<double>(count) : least) / batch;
    if (board_.rank() == 0) board_.combine_samples(count);
    const std::string result = board_.rank() == 0 ? summary({board_.samples(), count}, batch) : "{}";
    board_.sync();  // before a rank overwrites its samples
    return result;
  }

  int batch_of(double duration) const {
    const double shortest = board_.is_crowded() ? shortest_crowded_sample : shortest_sample;
    return static_cast<int>(std::clamp(std::ceil(shortest / duration), 1.0, 1e5));
  }

  /// Returns the duration of one call. The first ones are slower, and another program may interrupt some, so this is the
  /// least; where ranks share cores, the mean of so many calls that they take several time slices.
  double calibrate(timing way) {
    const double enough = board_.is_crowded() ? 2 * shortest_crowded_sample : 1e-3;
    double least = take_samples(0, 1, 1, way);
    for (std::size_t count = 1; count <= board::most_samples; count *= 4) {
      const double all = take_samples(0, count, 1, way);
      const double mean = all / static_cast<double>(count);
      least = board_.is_crowded() ? mean : std::min(least, mean);
      if (all > enough) break;
    }
    return least;
  }

  /// Stores `count` samples, each the mean of `batch` calls, from number `first`. Returns how long that took, which is
  /// the same value on all ranks.
  double take_samples(std::size_t first, std::size_t count, int batch, timing way) {
    double* samples = board_.samples() + first;
    // The sample of a round trip is the time of one way.
    const double calls = batch * (subject_.what == call::ping_pong ? 2.0 : 1.0);
    separate();
    const double first_begin = now();
    for (std::size_t i = 0; i < count; ++i) {
      if (way == timing::separated && i > 0) separate();
      const double begin = now();
      for (int call = 0; call < batch; ++call) run_once();
      samples[i] = (now() - begin) / calls;
    }
    const double taken = now() - first_begin;
    separate();
    return board_.maximum(taken);
  }

  Library& library_;
  board board_;
  driver driver_;
  pattern values_;
  subject subject_{call::barrier, 0, 0, 1};
  int measurements_ = 0;
  bool spoils_ = false;
  std::size_t cache_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<float[]> in_;
  std::shared_ptr<float[]> out_;
  std::size_t stride_ = 16;
  std::size_t slots_ = 1;
  std::size_t step_ = 1;
  std::size_t slot_ = 0;
  std::size_t last_ = 0;
  std::map<std::tuple<std::string, std::size_t, timing>, double> durations_;  // of a call, in seconds
};

/// Executes the commands of the driver, whose socket is in `folder`.
template <class Library>
int serve(Library& library, const std::string& folder) {
  try {
    return loop<Library>(library, folder).run();
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "rank %d: %s\n", library.rank(), problem.what());
    return 1;
  }
}

}  // namespace compare
