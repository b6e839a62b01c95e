// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Local processes as ranks, for examples, tests and benchmarks: `spawn` runs a command n times, `run_processes` runs a
/// function in n forked processes. For several machines, use an existing launcher.
///
/// The ranks find each other over TCP on this machine, or through files if `directory` is set or the loopback interface is
/// down. For TCP, the parent creates the listening socket before the first fork, and rank 0 inherits it
/// (`HOCKET_STORE_FD`), so that no other program can take the port. The children are killed when the thread that started them ends. A launcher that is not
/// killed leaves no zombie, file or socket behind; the next launch removes the directory of one that was killed: see
/// bootstrap/launch_directory.hpp. Processes that a rank has started end with that rank, unless they form their own
/// process group or the launcher was killed.
#pragma once

#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/launch_directory.hpp>
#include <hocket/bootstrap/process_group.hpp>
#include <hocket/bootstrap/tcp_protocol.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/network_interface.hpp>
#include <hocket/core/platform/socket.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/signalfd.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE

namespace launch {

/// How `spawn` runs its processes.
struct spawn_options {
  bool prefix_output = false;  ///< precede each line of output by "[rank] "
  bool report = true;          ///< print on stderr which rank failed first, and which ranks were killed
  /// Time that the other ranks have to end after a rank has failed or a signal was forwarded. Then they are sent
  /// SIGTERM, and SIGKILL one second later. `nanoseconds::max()`: no limit, so that they can `shrink` and continue.
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  /// After this time all ranks are killed, and `spawn` returns 124, unless a rank had failed before. Default: no limit.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max();
  /// If set, the ranks meet in a new directory under this one instead of over TCP. If the loopback interface is down, they
  /// meet in one under `TMPDIR`, or /tmp.
  std::string directory;
};

/// How `run_processes` runs its processes.
struct process_options {
  bool capture_output = false;                         ///< store the output in `process_result::output`
  std::chrono::nanoseconds timeout = default_timeout;  ///< processes that still run after it are killed
  std::string directory;                               ///< as in `spawn_options`
};

/// Exit code of a process of `run_processes` whose function has thrown an exception.
inline constexpr int code_of_exception = 125;

/// True if `spawn` or another launcher has made this process a rank.
using bootstrap::is_rank;

namespace detail {

/// The place where the ranks of one launch meet: a listening socket or a directory.
class launch_rendezvous {
 public:
  explicit launch_rendezvous(const std::string& parent) : token_(platform::random_name()) {
    if (!parent.empty()) {
      directory_.emplace(parent, token_);
      return;
    }
    if (!platform::reaches_loopback()) {
      directory_.emplace(temporary_directory(), token_);
      return;
    }
    failure cause;
    if (platform::listen_on("127.0.0.1", 0, listener_, cause) != 0) raise(std::move(cause));
    port_ = platform::local_address(listener_.get()).port();
  }

  launch_rendezvous(const launch_rendezvous&) = delete;
  launch_rendezvous& operator=(const launch_rendezvous&) = delete;

  void close_listener() noexcept { listener_.reset(); }
  int listener() const noexcept { return listener_.get(); }

  bootstrap::world_description world(int rank, int ranks) const {
    bootstrap::world_description result;
    result.rank = result.local_rank = rank;
    result.ranks = result.local_ranks = ranks;
    if (directory_) result.directory = directory_->path();
    result.token = token_;
    result.source = "launch";
    if (!directory_) {
      result.address = "127.0.0.1";
      result.port = port_;
      result.open = true;
      if (rank == 0) result.listener = listener_.get();
    }
    return result;
  }

  /// Tells the store which ranks have failed, because a rank that fails before it joins can't do so itself. Writes a
  /// marker file into the directory, or sends the server a hello that names the failed rank; the server ignores it if
  /// the rank has joined. Waits at most 100 ms for each failed rank; a report that can't be sent is dropped.
  void report_failures(process_group& group) {
    reported_.resize(group.size());
    for (std::size_t rank = directory_ ? 0 : 1; rank < group.size(); ++rank) {
      if (reported_[rank] || group.running(rank)) continue;
      reported_[rank] = true;
      if (group.result(rank).succeeded()) continue;
      if (directory_) {
        directory_->note_failure(static_cast<int>(rank));
      } else if (group.running(0)) {
        report_failed_rank(rank, group.size());
      }
    }
  }

 private:
  /// Returns where ranks can meet without the loopback interface.
  static std::string temporary_directory() {
    const char* const chosen = std::getenv("TMPDIR");
    const std::string result = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
    if (::access(result.c_str(), W_OK | X_OK) != 0) {
      raise(errc::bad_environment, hocket::detail::concat({"the loopback interface is down, and '", result,
                                                           "' is not writable: `ip link set lo up`, or set TMPDIR"}));
    }
    return result;
  }

  void report_failed_rank(std::size_t rank, std::size_t ranks) const {
    bootstrap::detail::hello greeting;
    greeting.rank = bootstrap::detail::encode_failed_rank(static_cast<std::int32_t>(rank));
    greeting.ranks = static_cast<std::int32_t>(ranks);
    greeting.token = token_;
    platform::file_descriptor socket;
    const deadline limit = deadline::after(std::chrono::milliseconds(100));
    if (platform::connect_to("127.0.0.1", port_, limit, socket)) return;
    static_cast<void>(platform::send_all(socket.get(), bootstrap::detail::encode(greeting), limit));
  }

  std::string token_;
  std::optional<launch_directory> directory_;
  platform::file_descriptor listener_;
  std::uint16_t port_ = 0;
  std::vector<bool> reported_;
};

/// Returns the environment variables that describe `world` to a process. Variables with empty values must be unset.
inline std::vector<std::pair<std::string, std::string>> variables_of(const bootstrap::world_description& world) {
  const std::string store = world.directory.empty() ? "tcp://" + platform::endpoint_text(world.address, world.port)
                                                    : "dir://" + world.directory;
  return {{"HOCKET_RANK", std::to_string(world.rank)},
          {"HOCKET_RANKS", std::to_string(world.ranks)},
          {"HOCKET_LOCAL_RANK", std::to_string(world.local_rank)},
          {"HOCKET_LOCAL_RANKS", std::to_string(world.local_ranks)},
          {"HOCKET_STORE", store},
          {"HOCKET_TOKEN", world.token},
          {"HOCKET_STORE_OPEN", world.open ? "1" : ""},
          {"HOCKET_STORE_FD", world.listener >= 0 ? std::to_string(world.listener) : ""}};
}

/// Returns this process's environment, with the variables of `world` in place of existing ones.
inline std::vector<std::string> environment_for(const bootstrap::world_description& world) {
  const auto variables = variables_of(world);
  std::vector<std::string> result;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : variables) replaced = replaced || text.substr(0, text.find('=')) == name;
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) {
    if (!value.empty()) result.push_back(name + '=' + value);
  }
  return result;
}

/// Returns the null-terminated array of pointers to `texts` that exec expects. `texts` must outlive the array.
inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Blocks SIGINT, SIGTERM and SIGHUP in this thread until destroyed; `next` returns those that have arrived.
class signal_catcher {
 public:
  signal_catcher() {
    ::sigemptyset(&caught_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&caught_, number);
    ::pthread_sigmask(SIG_BLOCK, &caught_, &previous_mask_);
    source_.reset(::signalfd(-1, &caught_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  signal_catcher(const signal_catcher&) = delete;
  signal_catcher& operator=(const signal_catcher&) = delete;
  ~signal_catcher() { restore(); }

  void restore() const noexcept { ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr); }
  int descriptor() const noexcept { return source_.get(); }

  std::optional<signalfd_siginfo> next() const noexcept {
    signalfd_siginfo info{};
    if (::read(source_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return info;
  }

 private:
  sigset_t caught_{};
  sigset_t previous_mask_{};
  platform::file_descriptor source_;
};

/// Runs one `spawn`: starts the commands and waits for them. If one fails, ends the others after the grace period.
class command_group {
 public:
  command_group(int ranks, std::vector<std::string> command, const spawn_options& options)
      : ranks_(ranks), command_(std::move(command)), options_(options), place_(options.directory),
        group_(options.prefix_output ? output_handling::prefix : output_handling::inherit) {}

  int run() {
    std::fflush(nullptr);
    for (int rank = 0; rank < ranks_; ++rank) start(rank);
    place_.close_listener();
    const deadline last = deadline::after(options_.timeout);
    while (group_.count_running() > 0) {
      group_.step(deadline(std::min(last.when(), next_kill_.when())), signals_.descriptor());
      place_.report_failures(group_);
      record_ended_ranks();
      forward_signals();
      if (last.passed()) time_out();
      if (next_kill_.passed()) kill_rest();
    }
    group_.finish_output();
    return status_;
  }

 private:
  void start(int rank) {
    std::vector<std::string> environment = environment_for(place_.world(rank, ranks_));
    const std::vector<char*> variables = pointers_to(environment);
    const std::vector<char*> arguments = pointers_to(command_);
    platform::pipe_ends exec_error = platform::make_pipe();
    group_.start([&] {
      signals_.restore();
      if (rank == 0 && place_.listener() >= 0) platform::set_inherited(place_.listener(), true);
      // Only one process group can read a terminal: that of the launcher.
      if (rank != 0 || ::isatty(0) == 1) ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
      ::execvpe(arguments[0], arguments.data(), variables.data());
      const int error = errno;
      static_cast<void>(platform::write_all(exec_error.write.get(), std::as_bytes(std::span(&error, 1))));
      return 127;
    });
    exec_error.write.reset();
    int error = 0;
    ssize_t size = 0;
    do {
      size = ::read(exec_error.read.get(), &error, sizeof error);
    } while (size < 0 && errno == EINTR);
    if (size > 0)
      raise(platform::system_failure(hocket::detail::concat({"cannot run '", command_[0], "'"}), error,
                                     errc::invalid_argument));
  }

  void record_ended_ranks() {
    recorded_.resize(group_.size());
    for (std::size_t rank = 0; rank < group_.size(); ++rank) {
      if (group_.running(rank) || recorded_[rank]) continue;
      recorded_[rank] = true;
      const int status = group_.result(rank).status();
      if (status == 0 || status_ != 0) continue;
      status_ = status;
      if (next_kill_.never()) next_kill_ = deadline::after(options_.grace);
      if (options_.report && group_.count_running() > 0) {
        report(hocket::detail::concat({"rank ", rank, " ended with status ", status, "; the others ",
                                       next_kill_.never() ? "continue"
                                                          : "have " + platform::seconds_text(options_.grace) +
                                                                " to end (spawn_options::grace)"}));
      }
    }
  }

  void forward_signals() {
    while (const auto info = signals_.next()) {
      const int number = static_cast<int>(info->ssi_signo);
      group_.signal_all(number);
      if (status_ == 0) status_ = 128 + number;
      if (next_kill_.never()) next_kill_ = deadline::after(options_.grace);
    }
  }

  void time_out() {
    std::string list;
    for (std::size_t rank = 0; rank < group_.size(); ++rank) {
      if (group_.running(rank)) hocket::detail::append(list, {' ', rank});
    }
    if (options_.report && !list.empty())
      report("killed these ranks, which were still running at the time limit:" + list);
    if (status_ == 0 && !list.empty()) status_ = 124;
    group_.signal_all(SIGKILL);
    while (group_.count_running() > 0) group_.step(deadline());
  }

  void kill_rest() {
    group_.signal_all(terminated_ ? SIGKILL : SIGTERM);
    terminated_ = true;
    next_kill_ = deadline::after(std::chrono::seconds(1));
  }

  static void report(const std::string& text) {
    const std::string line = hocket::detail::concat({"hocket launch: ", text, '\n'});
    static_cast<void>(platform::write_all(2, std::as_bytes(std::span(line.data(), line.size()))));
  }

  int ranks_;
  std::vector<std::string> command_;
  spawn_options options_;
  signal_catcher signals_;
  launch_rendezvous place_;
  process_group group_;
  std::vector<bool> recorded_;
  deadline next_kill_;
  bool terminated_ = false;
  int status_ = 0;
};

/// Runs `function` in a child of `run_processes`. Returns the exit code: `code_of_exception` if `function` throws.
template <typename Function>
int run_rank(Function& function, bootstrap::world_description world) {
  for (const auto& [name, value] : variables_of(world)) {
    value.empty() ? ::unsetenv(name.c_str()) : ::setenv(name.c_str(), value.c_str(), 1);
  }
  int code = 0;
#if HOCKET_HAS_EXCEPTIONS
  try {
    code = function(std::move(world));
  } catch (const std::exception& cause) {
    std::fprintf(stderr, "%s\n", cause.what());
    code = code_of_exception;
  } catch (...) {  // an exception that left the child's `body` would run the caller's handlers in the child
    std::fprintf(stderr, "the rank ended with an exception that is not a std::exception\n");
    code = code_of_exception;
  }
#else
  code = function(std::move(world));
#endif
  std::fflush(nullptr);
  return code;
}

inline void refuse_rank(int ranks) {
  const bootstrap::detail::variable_reader variables(bootstrap::detail::variable_of_this_process);
  const char* const name = bootstrap::detail::variable_of_rank(variables);
  if (name == nullptr) return;
  raise(errc::invalid_argument,
        hocket::detail::concat({name, "='", variables.text(name),
                                "' states that this process is itself a rank, so that each rank would start ", ranks,
                                " more processes: call spawn only where launch::is_rank() is false, or unset ", name}));
}

inline void check_ranks(int ranks) {
  if (ranks < 1 || ranks > bootstrap::most_ranks) {
    raise(errc::invalid_argument,
          hocket::detail::concat({"cannot launch ", ranks, " ranks: give a number from 1 to ", bootstrap::most_ranks}));
  }
}

}  // namespace detail

/// Runs `command` (a program and its arguments) once for each of `ranks` ranks, with `HOCKET_*` set, and waits for all.
///
/// Returns 0 if all ranks succeeded. Otherwise, by what happened first: the status of the failed rank (its exit code or
/// 128 plus its signal), 128 plus a forwarded signal, or 124 for the time limit. Forwards SIGINT, SIGTERM and SIGHUP to
/// the ranks while it waits. `spawn_options::grace` limits how long ranks may continue after one has failed. Rank 0 inherits stdin unless stdin is a terminal; the other ranks read from /dev/null.
/// **Errors.** `invalid_argument`: `ranks` is not from 1 to 65536; there is no command, or it can't be run; this process
/// is itself a rank. **Threads.** `spawn` receives signals only if the other threads of the program block them.
inline int spawn(int ranks, std::vector<std::string> command, const spawn_options& options = {}) {
  detail::check_ranks(ranks);
  if (command.empty()) raise(errc::invalid_argument, "no command to launch: give a program and its arguments");
  detail::refuse_rank(ranks);
  return detail::command_group(ranks, std::move(command), options).run();
}

/// Calls `function(world)` in each of `ranks` forked processes, and returns one result for each rank. The return value
/// of `function` is the exit code of its process; an exception results in `code_of_exception`.
///
/// For tests. Call it from a program with a single thread, because a fork copies only the calling thread. A failed rank
/// does not end others; ranks that still run after the timeout are killed, and `timed_out` is set in their results. The
/// processes have `HOCKET_*` set, as with `spawn`.
template <typename Function>
  requires std::is_invocable_r_v<int, Function&, bootstrap::world_description>
std::vector<process_result> run_processes(int ranks, Function function, const process_options& options = {}) {
  detail::check_ranks(ranks);
  detail::launch_rendezvous place(options.directory);
  detail::process_group group(options.capture_output ? detail::output_handling::capture
                                                     : detail::output_handling::inherit);
  std::fflush(nullptr);
  for (int rank = 0; rank < ranks; ++rank) {
    group.start([&] {
      group.abandon();
      const bootstrap::world_description world = place.world(rank, ranks);
      if (rank != 0) place.close_listener();
      // `function` may replace its process by another program, which finds the descriptor in HOCKET_STORE_FD.
      if (place.listener() >= 0) platform::set_inherited(place.listener(), true);
      return detail::run_rank(function, world);
    });
  }
  place.close_listener();
  const deadline last = deadline::after(options.timeout);
  while (group.count_running() > 0 && !last.passed()) {
    group.step(last);
    place.report_failures(group);
  }
  for (std::size_t rank = 0; rank < group.size(); ++rank) group.result(rank).timed_out = group.running(rank);
  group.signal_all(SIGKILL);
  while (group.count_running() > 0) group.step(deadline());
  group.finish_output();
  std::vector<process_result> results;
  for (std::size_t rank = 0; rank < group.size(); ++rank) results.push_back(std::move(group.result(rank)));
  return results;
}

/// Describes each failed rank in one line, followed by its captured output; returns an empty text if no rank failed.
inline std::string describe_failures(const std::vector<process_result>& results) {
  std::string text;
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    const process_result& each = results[rank];
    if (each.succeeded()) continue;
    hocket::detail::append(text, {"rank ", rank});
    if (each.timed_out) {
      text += " was still running at the time limit";
    } else if (each.signal != 0) {
      hocket::detail::append(text, {" was ended by signal ", each.signal});
    } else {
      hocket::detail::append(text, {" ended with exit code ", each.exit_code});
    }
    text += each.output.empty() ? "\n" : hocket::detail::concat({", and wrote:\n", each.output, '\n'});
  }
  return text;
}

}  // namespace launch

HOCKET_END_NAMESPACE
