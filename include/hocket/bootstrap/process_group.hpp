// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A group of child processes, one per rank: collects their results and their output, and leaves none behind.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/socket.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

HOCKET_BEGIN_NAMESPACE

namespace launch {

/// How one process ended.
struct process_result {
  int exit_code = -1;      ///< -1: a signal ended the process
  int signal = 0;          ///< the signal that ended the process
  bool timed_out = false;  ///< the process still ran at the deadline, and was killed
  std::string output;      ///< what the process wrote to stdout and stderr, if captured

  bool succeeded() const noexcept { return exit_code == 0 && !timed_out; }
  /// Returns the status as a shell reports it: the exit code, or 128 plus the signal.
  int status() const noexcept { return exit_code >= 0 ? exit_code : 128 + signal; }
};

namespace detail {

enum class output_handling { inherit, prefix, capture };

/// Forwards a child's output in whole lines, each preceded by a prefix.
class line_prefixer {
 public:
  line_prefixer(std::string prefix, int target) : prefix_(std::move(prefix)), target_(target) {}

  void add(std::span<const std::byte> bytes) {
    std::string lines;
    for (const std::byte each : bytes) {
      partial_ += static_cast<char>(each);
      if (partial_.back() == '\n') {
        lines += prefix_ + partial_;
        partial_.clear();
      }
    }
    write(lines);
  }

  void finish() {
    if (!partial_.empty()) write(prefix_ + partial_ + '\n');
    partial_.clear();
  }

 private:
  void write(const std::string& text) const {
    static_cast<void>(platform::write_all(target_, std::as_bytes(std::span(text.data(), text.size()))));
  }

  std::string prefix_;
  int target_;
  std::string partial_;
};

/// Forks, watches and reaps child processes. The destructor kills those that still run. One thread only.
///
/// Each child leads its own process group, so that processes that it has started get its signals and end with it.
class process_group {
 public:
  explicit process_group(output_handling output) : output_(output) {}
  process_group(const process_group&) = delete;
  process_group& operator=(const process_group&) = delete;

  ~process_group() {
    signal_all(SIGKILL);
    for (child& each : children_) {
      if (each.running) reap(each, 0);
    }
  }

  /// Forks the next rank, which exits with the code that `body()` returns. It is killed when this thread ends.
  template <typename Body>
  void start(Body&& body) {
    std::array<platform::pipe_ends, 2> pipes;
    if (output_ != output_handling::inherit) {
      for (platform::pipe_ends& each : pipes) each = platform::make_pipe();
    }
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) raise(platform::system_failure("cannot start a process", errno));
    if (pid == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(127);
      for (std::size_t i = 0; i < pipes.size(); ++i) {
        if (pipes[i].write) ::dup2(pipes[i].write.get(), static_cast<int>(i) + 1);
        pipes[i] = {};
      }
      ::_exit(body());
    }
    // Both parent and child do this, so that signals reach the group whichever runs first.
    ::setpgid(pid, pid);
    child added;
    added.pid = pid;
    added.running = true;
    // If the kernel has no pidfd (before 5.3), `step` polls every few milliseconds instead.
    added.watch.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    const std::string prefix = hocket::detail::concat({'[', children_.size(), "] "});
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      if (!pipes[i].read) continue;
      platform::set_nonblocking(pipes[i].read.get());
      added.streams.push_back({std::move(pipes[i].read), line_prefixer(prefix, static_cast<int>(i) + 1)});
    }
    children_.push_back(std::move(added));
  }

  /// Call in a child: forgets its siblings, and closes the parent's descriptors.
  void abandon() noexcept { children_.clear(); }

  std::size_t size() const noexcept { return children_.size(); }
  bool running(std::size_t rank) const noexcept { return children_[rank].running; }
  process_result& result(std::size_t rank) noexcept { return children_[rank].result; }
  const process_result& result(std::size_t rank) const noexcept { return children_[rank].result; }

  std::size_t count_running() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(children_.begin(), children_.end(), [](const child& each) { return each.running; }));
  }

  void signal_all(int number) noexcept {
    for (const child& each : children_) {
      if (each.running) ::kill(-each.pid, number);
    }
  }

  /// Waits until a child ends or writes, `extra` is readable, or `until` passes; then records what happened.
  void step(deadline until, int extra = -1) {
    polled_.assign(1, pollfd{extra, POLLIN, 0});
    bool all_watched = true;
    for (const child& each : children_) {
      if (each.running && each.watch) polled_.push_back({each.watch.get(), POLLIN, 0});
      if (each.running && !each.watch) all_watched = false;
      for (const stream& output : each.streams) {
        if (output.source) polled_.push_back({output.source.get(), POLLIN, 0});
      }
    }
    const std::int64_t longest = all_watched ? 3600000 : 10;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until.left()).count();
    ::poll(polled_.data(), polled_.size(), static_cast<int>(std::min<std::int64_t>(left, longest)));
    for (child& each : children_) {
      if (each.running) reap(each, WNOHANG);
      read_output(each);
    }
  }

  /// Reads the rest of the output of ended children. Does not wait, because a grandchild may hold the pipe forever.
  void finish_output() {
    for (child& each : children_) {
      read_output(each);
      for (stream& output : each.streams) output.lines.finish();
    }
  }

 private:
  struct stream {
    platform::file_descriptor source;
    line_prefixer lines;
  };

  struct child {
    pid_t pid = -1;
    platform::file_descriptor watch;
    bool running = false;
    std::vector<stream> streams;
    process_result result;
  };

  static void reap(child& each, int options) noexcept {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(each.pid), &info, WEXITED | WNOWAIT | options) != 0 && errno == EINTR) {}
    // End the processes that it has left behind before its process number is free for reuse.
    if (info.si_pid == each.pid) ::kill(-each.pid, SIGKILL);
    int status = 0;
    pid_t ended = 0;
    do {
      ended = ::waitpid(each.pid, &status, options);
    } while (ended < 0 && errno == EINTR);
    if (ended == 0) return;
    each.running = false;
    each.watch.reset();
    // The status is lost (for example because SIGCHLD is ignored): unknown is not success.
    if (ended < 0) {
      each.result.exit_code = 255;
    } else if (WIFEXITED(status)) {
      each.result.exit_code = WEXITSTATUS(status);
    } else {
      each.result.signal = WTERMSIG(status);
    }
  }

  void read_output(child& each) {
    for (stream& output : each.streams) {
      std::array<std::byte, 65536> chunk;
      while (output.source) {
        const ssize_t size = ::read(output.source.get(), chunk.data(), chunk.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (size <= 0) {
          output.source.reset();
          break;
        }
        append_output(each, output, std::span<const std::byte>(chunk).first(static_cast<std::size_t>(size)));
      }
    }
  }

  void append_output(child& each, stream& output, std::span<const std::byte> bytes) const {
    if (output_ == output_handling::prefix) {
      output.lines.add(bytes);
    } else {
      each.result.output.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }

  output_handling output_;
  std::vector<child> children_;
  std::vector<pollfd> polled_;
};

}  // namespace detail

}  // namespace launch

HOCKET_END_NAMESPACE
