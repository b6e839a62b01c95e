// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/bootstrap/connect_store.hpp>
#include <hocket/bootstrap/launch.hpp>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <sched.h>
#include <unistd.h>

#include "bootstrap/ranks.hpp"
#include "support/catch.hpp"
#include "support/namespaces.hpp"

using namespace bootstrap_test;
using bootstrap::connect_store;
using bootstrap::world_description;
using hocket::errc;
using hocket::launch::describe_failures;
using hocket::launch::process_options;
using hocket::launch::process_result;
using hocket::launch::run_processes;
using hocket::launch::spawn;
using hocket::launch::spawn_options;

namespace {

/// Result of `launch()` in a forked process that is not a rank.
template <class Launch>
process_result launched(Launch launch) {
  process_options outer;
  outer.capture_output = true;
  outer.timeout = 20s;
  const auto as_no_rank = [&](const world_description&) {
    ::unsetenv("HOCKET_RANK");
    return launch();
  };
  return run_processes(1, as_no_rank, outer)[0];
}

/// Calls `spawn` in a forked process, so that its output to stdout and stderr can be checked.
process_result spawn_in_a_process(int ranks, const std::string& script, const spawn_options& options) {
  return launched([&] { return spawn(ranks, {"sh", "-c", script}, options); });
}

spawn_options quick() {
  spawn_options options;
  options.report = false;
  options.grace = 50ms;
  return options;
}

/// True if a process that is not a child of this one ends soon. A zombie has ended: another process must reap it.
bool is_gone(pid_t process) {
  for (int i = 0; i < 100; ++i) {
    bootstrap::blob content;
    if (!platform::read_file("/proc/" + std::to_string(process) + "/stat", content)) return true;
    if (bootstrap::blob_text(content).find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(20ms);
  }
  return false;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE("processes exchange blobs over TCP and through a directory") {
  const scratch_directory scratch;
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    for (const std::string& directory : {std::string(), scratch.path()}) {
      process_options options;
      options.capture_output = true;
      options.timeout = 20s;
      options.directory = directory;
      const process_resources before;
      const auto results = run_processes(
          ranks,
          [](const world_description& world) {
            auto store = connect_store(world, within(10s));
            const auto all = bootstrap::exchange(store, "a", world.rank, world.ranks, blob_of(world.rank), within(10s));
            return all == blobs_of(world.ranks) ? 0 : 1;
          },
          options);
      INFO(ranks << " ranks, directory '" << directory << "'\n" << describe_failures(results));
      CHECK(results.size() == static_cast<std::size_t>(ranks));
      CHECK(describe_failures(results).empty());
      CHECK(process_resources() == before);
    }
  }
  CHECK(scratch.entries() == 0);
}

TEST_CASE("a forked process can also read its world from its environment") {
  const auto results = run_processes(3, [](const world_description& world) {
    const world_description read = bootstrap::read_environment();
    const bool same = read.rank == world.rank && read.ranks == 3 && read.local_rank == world.rank &&
                      read.local_ranks == 3 && read.port == world.port && read.token == world.token &&
                      read.listener == world.listener && read.open && !world.token.empty();
    auto store = connect_store(read, within(10s));
    bootstrap::exchange(store, "a", read.rank, read.ranks, {}, within(10s));
    return same ? 0 : 1;
  });
  INFO(describe_failures(results));
  CHECK(describe_failures(results).empty());
}

TEST_CASE("a program that replaces a forked process inherits the socket of the store") {
  const auto results = run_processes(2, [](const world_description&) {
    ::execl("/bin/sh", "sh", "-c", "[ -z \"$HOCKET_STORE_FD\" ] || [ -S /proc/self/fd/$HOCKET_STORE_FD ]",
            static_cast<char*>(nullptr));
    return 126;
  });
  INFO(describe_failures(results));
  CHECK(describe_failures(results).empty());
}

TEST_CASE("is_rank returns whether the variables of a launcher make the process a rank") {
  const auto is_rank_with = [](const std::vector<std::pair<const char*, const char*>>& set) {
    const auto ended = run_processes(1, [&](const world_description&) {
      ::unsetenv("HOCKET_RANK");
      for (const auto& [name, value] : set) ::setenv(name, value, 1);
      return hocket::launch::is_rank() ? 1 : 0;
    });
    return ended[0].exit_code == 1;
  };
  CHECK(is_rank_with({{"HOCKET_RANK", "1"}}));
  CHECK_FALSE(is_rank_with({{"HOCKET_RANK", ""}}));
  CHECK_FALSE(is_rank_with({{"RANK", ""}, {"WORLD_SIZE", "2"}}));
  CHECK_FALSE(is_rank_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}));  // a batch script
  struct launcher_variables {
    const char* rank;
    const char* ranks;
  };
  for (const launcher_variables& each : {launcher_variables{"RANK", "WORLD_SIZE"},
                                         {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"},
                                         {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    INFO(each.rank);
    CHECK(is_rank_with({{each.rank, "0"}, {each.ranks, "2"}}));
    CHECK_FALSE(is_rank_with({{each.rank, "0"}, {each.ranks, "1"}}));
    CHECK(is_rank_with({{each.rank, "0"}, {each.ranks, "1"}, {"HOCKET_RANK", "0"}, {"HOCKET_RANKS", "1"}}));
  }
}

TEST_CASE("each result contains how its process ended and its output") {
  process_options options;
  options.capture_output = true;
  options.timeout = 1s;
  const auto begin = std::chrono::steady_clock::now();
  const auto results = run_processes(
      5,
      [](const world_description& world) -> int {
        if (world.rank == 1) return 7;
        if (world.rank == 2) ::raise(SIGKILL);
        if (world.rank == 3) hocket::raise(errc::mismatch, "on purpose");
        if (world.rank == 4) std::this_thread::sleep_for(60s);
        return 0;
      },
      options);
  CHECK(seconds_since(begin) < 5);
  CHECK(results[0].succeeded());
  CHECK(results[1].exit_code == 7);
  CHECK(results[2].signal == SIGKILL);
  CHECK(results[2].status() == 128 + SIGKILL);
  CHECK(results[3].exit_code == 125);
  CHECK_THAT(results[3].output, Catch::Contains("on purpose"));
  CHECK(results[4].timed_out);
  const std::string text = describe_failures(results);
  CHECK_THAT(text, Catch::Contains("rank 1 ended with exit code 7"));
  CHECK_THAT(text, Catch::Contains("rank 2 was ended by signal 9"));
  CHECK_THAT(text, Catch::Contains("rank 4 was still running at the time limit"));
  CHECK_THAT(text, !Catch::Contains("rank 0"));
}

TEST_CASE("a rank that ends by an exception of any type has exit code 125 and reports the exception") {
  process_options options;
  options.capture_output = true;
  const auto results = run_processes(
      2,
      [](const world_description& where) -> int {
        if (where.rank == 1) throw 5;
        throw std::runtime_error("no good");
      },
      options);
  REQUIRE(results.size() == 2);
  CHECK(results[0].exit_code == 125);
  CHECK(results[0].output.find("no good") != std::string::npos);
  CHECK(results[1].exit_code == 125);
  CHECK(results[1].output.find("not a std::exception") != std::string::npos);
  CHECK(describe_failures(results).find("rank 1 ended with exit code 125") != std::string::npos);
}

namespace {

/// Runs `body(world)`, which kills rank 2, on four ranks: the others must learn this long before any deadline.
template <class Body>
void check_that_rank_2_is_missed(Body body, const std::string& directory = {}) {
  process_options options;
  options.directory = directory;
  options.capture_output = true;
  options.timeout = 20s;
  const process_resources before;
  const auto begin = std::chrono::steady_clock::now();
  const auto results = run_processes(
      4,
      [&](const world_description& world) {
        try {
          body(world);
        } catch (const hocket::error& cause) {
          return cause.code() == errc::peer_lost && cause.context().peer == 2 ? 42 : 1;
        }
        return 0;
      },
      options);
  CHECK(seconds_since(begin) < 3);
  INFO(describe_failures(results));
  CHECK(results[2].signal == SIGKILL);
  for (const std::size_t rank : {0U, 1U, 3U}) CHECK(results[rank].exit_code == 42);
  CHECK(process_resources() == before);
}

}  // namespace

TEST_CASE("every survivor names a killed rank long before the deadline") {
  const scratch_directory scratch;
  for (const std::string& directory : {std::string(), scratch.path()}) {
    check_that_rank_2_is_missed(
        [](const world_description& world) {
          auto store = connect_store(world, within(10s));
          bootstrap::exchange(store, "first", world.rank, world.ranks, {}, within(10s));
          if (world.rank == 2) ::raise(SIGKILL);
          bootstrap::exchange(store, "second", world.rank, world.ranks, {}, within(10s));
        },
        directory);
  }
}

TEST_CASE("a rank that ends because another was killed is not named as the culprit, even if the launcher checks late") {
  const scratch_directory scratch;
  const auto survivor = [](const world_description& world) {
    auto store = connect_store(world, within(10s));
    const std::string process = std::to_string(::getpid());
    const auto first =
        bootstrap::exchange(store, "first", world.rank, world.ranks, bootstrap::text_bytes(process), within(10s));
    if (world.rank == 2) {
      ::kill(::getppid(), SIGSTOP);
      ::raise(SIGKILL);
    }
    if (world.rank == 1) {
      // The launcher then finds that ranks 0 and 2 have ended, and reports this before this rank checks.
      if (!is_gone(std::atoi(bootstrap::blob_text(first[0]).c_str()))) return 1;
      ::kill(::getppid(), SIGCONT);
      bootstrap::blob ignored;
      const std::string note = world.directory + '/' + bootstrap::detail::failed_note;
      for (int i = 0; i < 200 && !platform::read_file(note, ignored); ++i) std::this_thread::sleep_for(10ms);
    }
    try {
      bootstrap::exchange(store, "second", world.rank, world.ranks, {}, within(10s));
    } catch (const hocket::error& cause) {
      return cause.code() == errc::peer_lost && cause.context().peer == 2 ? 42 : 2;
    }
    return 3;
  };
  const process_result launcher = launched([&] {
    process_options options;
    options.directory = scratch.path();
    const auto results = run_processes(3, survivor, options);
    return results[0].exit_code == 42 && results[2].signal == SIGKILL ? results[1].exit_code : 4;
  });
  CHECK(launcher.exit_code == 42);
  CHECK(scratch.entries() == 0);
}

TEST_CASE("a rank killed before it opens the store ends the others' start-up, even if rank 0 starts to serve late") {
  const scratch_directory scratch;
  for (const std::string& directory : {std::string(), scratch.path()}) {
    for (const auto late : {0ms, 300ms}) {
      check_that_rank_2_is_missed(
          [late](const world_description& world) {
            if (world.rank == 2) ::raise(SIGKILL);
            if (world.rank == 0) std::this_thread::sleep_for(late);
            auto store = connect_store(world, within(10s));
            bootstrap::exchange(store, "first", world.rank, world.ranks, {}, within(10s));
          },
          directory);
    }
  }
}

TEST_CASE("a killed rank 0 ends the others' start-up") {
  const scratch_directory scratch;
  for (const std::string& directory : {std::string(), scratch.path()}) {
    process_options options;
    options.timeout = 20s;
    options.directory = directory;
    const auto results = run_processes(
        3,
        [](const world_description& world) {
          auto store = connect_store(world, within(10s));
          try {
            // Rank 0 may be killed before it has sent the others their answers of the first exchange.
            bootstrap::exchange(store, "first", world.rank, world.ranks, {}, within(10s));
            if (world.rank == 0) ::raise(SIGKILL);
            bootstrap::exchange(store, "second", world.rank, world.ranks, {}, within(10s));
          } catch (const hocket::error& cause) {
            return cause.code() == errc::peer_lost && cause.context().peer == 0 ? 42 : 1;
          }
          return 0;
        },
        options);
    INFO("directory '" << directory << "'");
    CHECK(results[1].exit_code == 42);
    CHECK(results[2].exit_code == 42);
  }
}

TEST_CASE("spawn sets the variables of each rank") {
  const std::string script =
      "echo $HOCKET_RANK/$HOCKET_RANKS $HOCKET_LOCAL_RANK/$HOCKET_LOCAL_RANKS ${HOCKET_STORE%:*} ${#HOCKET_TOKEN} "
      "$HOCKET_STORE_OPEN ${HOCKET_STORE_FD:+socket}";
  spawn_options options = quick();
  options.prefix_output = true;
  const process_result result = spawn_in_a_process(3, script, options);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.output, Catch::Contains("[0] 0/3 0/3 tcp://127.0.0.1 32 1 socket\n"));
  CHECK_THAT(result.output, Catch::Contains("[1] 1/3 1/3 tcp://127.0.0.1 32 1\n"));
  CHECK_THAT(result.output, Catch::Contains("[2] 2/3 2/3 tcp://127.0.0.1 32 1\n"));
}

TEST_CASE("spawn keeps lines of output whole and ends the last one with a newline") {
  spawn_options options = quick();
  options.prefix_output = true;
  const process_result result =
      spawn_in_a_process(2, "printf 'a%s' $HOCKET_RANK; sleep 0.1; echo b; printf end >&2", options);
  CHECK_THAT(result.output, Catch::Contains("[0] a0b\n"));
  CHECK_THAT(result.output, Catch::Contains("[1] a1b\n"));
  CHECK_THAT(result.output, Catch::Contains("[0] end\n"));
}

TEST_CASE("spawn returns the first status that is not 0, and ends the other ranks") {
  const process_resources before;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(spawn(3, {"true"}, quick()) == 0);
  CHECK(spawn(3, {"sh", "-c", "test $HOCKET_RANK != 1 || exit 9; sleep 60"}, quick()) == 9);
  CHECK(spawn(3, {"sh", "-c", "test $HOCKET_RANK != 2 || kill -9 $$; sleep 60"}, quick()) == 128 + SIGKILL);
  CHECK(seconds_since(begin) < 5);
  CHECK(process_resources() == before);
}

TEST_CASE("spawn gives the other ranks time to notice a failure, and kills ranks that ignore SIGTERM") {
  const process_resources before;
  spawn_options options = quick();
  options.grace = 5s;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(spawn(2, {"sh", "-c", "test $HOCKET_RANK = 0 && exit 3; sleep 0.3; exit 4"}, options) == 3);
  CHECK(seconds_since(begin) > 0.25);
  CHECK(spawn(2, {"sh", "-c", "test $HOCKET_RANK = 0 && exit 3; trap '' TERM; while :; do sleep 0.1; done"}, quick()) ==
        3);
  CHECK(seconds_since(begin) < 5);
  CHECK(process_resources() == before);
}

TEST_CASE("without a limit to the grace period, the other ranks continue after a failure") {
  const process_resources before;
  spawn_options options = quick();
  options.grace = std::chrono::nanoseconds::max();
  const scratch_directory scratch;
  const std::string file = scratch.path() + "/continued";
  CHECK(spawn(2, {"sh", "-c", "test $HOCKET_RANK = 0 && exit 3; sleep 0.3; echo end > " + file}, options) == 3);
  bootstrap::blob content;
  CHECK(platform::read_file(file, content));
  CHECK(process_resources() == before);
}

TEST_CASE("spawn kills all ranks at its time limit") {
  const process_resources before;
  spawn_options options = quick();
  options.timeout = 200ms;
  const auto begin = std::chrono::steady_clock::now();
  CHECK(spawn(2, {"sleep", "60"}, options) == 124);
  CHECK(seconds_since(begin) < 3);
  CHECK(process_resources() == before);
}

TEST_CASE("processes that a rank has started end with it") {
  const scratch_directory scratch;
  const std::string file = scratch.path() + "/started";
  CHECK(spawn(1, {"sh", "-c", "sleep 60 & echo $! > " + file}, quick()) == 0);
  bootstrap::blob content;
  REQUIRE(platform::read_file(file, content));
  CHECK(is_gone(std::atoi(bootstrap::blob_text(content).c_str())));
}

TEST_CASE("spawn refuses to start ranks from a rank, which would never end") {
  const auto ended = run_processes(1, [](const world_description&) {
    try {
      return hocket::launch::spawn(2, {"true"});
    } catch (const hocket::error& cause) {
      const std::string& text = cause.reason();
      return text.starts_with("HOCKET_RANK='0' states") && text.ends_with("or unset HOCKET_RANK") ? 42 : 43;
    }
  });
  CHECK(ended[0].exit_code == 42);
}

TEST_CASE("spawn reports a command that cannot be run, an empty command, and a wrong number of ranks") {
  const process_resources before;
  CHECK_THROWS_WITH(spawn(3, {"./no such program"}, quick()), Catch::Contains("./no such program"));
  CHECK_THROWS_WITH(spawn(3, {}, quick()), Catch::Contains("no command"));
  CHECK_THROWS_WITH(spawn(0, {"true"}, quick()), Catch::Contains("from 1 to 65536"));
  CHECK(process_resources() == before);
}

TEST_CASE("spawn removes its directory, even if its ranks were killed") {
  const scratch_directory scratch;
  spawn_options options = quick();
  options.directory = scratch.path();
  const std::string script =
      "d=${HOCKET_STORE#dir://}; test -d $d || exit 5; mkdir -p $d/job/session; echo > $d/job/session/file; kill -9 $$";
  CHECK(spawn(2, {"sh", "-c", script}, options) == 128 + SIGKILL);
  CHECK(scratch.entries() == 0);
}

TEST_CASE("without a loopback interface, ranks meet in a directory for temporary files, or learn what is missing") {
  if (!hocket_test::may_make_namespaces()) return hocket_test::skip_without_rights("a host without loopback interface");
  const scratch_directory scratch;
  const auto without_loopback = [&](const std::string& temporary, auto launch) {
    return launched([&] {
      if (::unshare(CLONE_NEWNET) != 0 || ::setenv("TMPDIR", temporary.c_str(), 1) != 0) return 9;
      return launch();
    });
  };
  const auto exchange_in_processes = [] {
    return describe_failures(run_processes(3,
                                           [](const world_description& world) {
                                             auto store = connect_store(world, within(10s));
                                             return bootstrap::exchange(store, "key", world.rank, 3,
                                                                        blob_of(world.rank), within(10s)) == blobs_of(3)
                                                        ? 0
                                                        : 1;
                                           }))
                   .empty()
               ? 0
               : 1;
  };
  CHECK(without_loopback(scratch.path(), exchange_in_processes).exit_code == 0);
  CHECK(without_loopback(scratch.path(), [] {
          return spawn(2, {"sh", "-c", "test -d ${HOCKET_STORE#dir://}"}, quick());
        }).exit_code == 0);
  CHECK(scratch.entries() == 0);
  const auto failed = without_loopback("/nowhere", exchange_in_processes);
  CHECK(failed.exit_code == 125);
  INFO(failed.output);
  CHECK(failed.output.find("the loopback interface is down, and '/nowhere' is not writable") != std::string::npos);
  const auto by_address = without_loopback(scratch.path(), [] {
    bootstrap::tcp_store({1, 2, "127.0.0.1", 4444, "", -1}, within(50ms));
    return 0;
  });
  INFO(by_address.output);
  CHECK(by_address.output.find("the loopback interface is down: `ip link set lo up`") != std::string::npos);
}

TEST_CASE("the directory for spawn may be relative to the launcher's working directory") {
  const scratch_directory scratch;
  const process_result result = launched([&] {
    if (::chdir(scratch.path().c_str()) != 0) return 9;
    spawn_options options = quick();
    options.directory = ".";
    return spawn(2, {"sh", "-c", "cd / && test -d ${HOCKET_STORE#dir://}"}, options);
  });
  CHECK(result.exit_code == 0);
  CHECK(scratch.entries() == 0);
}

TEST_CASE("a launcher removes the directories of killed launchers, and none that is in use") {
  const scratch_directory scratch;
  spawn_options options = quick();
  options.directory = scratch.path();
  const std::string files = "d=${HOCKET_STORE#dir://}; mkdir -p $d/job/session; echo > $d/job/session/file; ";
  const auto killed = [&] {
    // One rank: a second one could still create its files after the next launcher has removed the directory.
    return spawn_in_a_process(1, files + "kill -9 $PPID; exec sleep 60", options).signal == SIGKILL;
  };
  ::mkdir((scratch.path() + "/hocket-launch-of-somebody").c_str(), 0700);
  ::mkdir((scratch.path() + "/other").c_str(), 0700);
  CHECK(killed());
  CHECK(killed());
  CHECK(scratch.entries() == 3);  // the directory of the first has been removed
  // The outer launch below is alive while the inner one starts and ends.
  CHECK(spawn(1, {"sh", "-c", files + "exit 0"}, options) == 0);
  CHECK(scratch.entries() == 2);
  process_options outer;
  outer.directory = scratch.path();
  const auto results = run_processes(
      1,
      [&](const world_description& world) {
        ::unsetenv("HOCKET_RANK");
        const bool fine = spawn(1, {"true"}, options) == 0 && scratch.entries() == 3;
        return fine && ::access(world.directory.c_str(), W_OK) == 0 ? 0 : 1;
      },
      outer);
  CHECK(describe_failures(results) == "");
  CHECK(scratch.entries() == 2);
}

TEST_CASE("a signal to the launcher reaches the ranks, and spawn returns") {
  const auto begin = std::chrono::steady_clock::now();
  const process_result result = launched([] {
    const pid_t launcher = ::getpid();
    const pid_t sender = ::fork();
    if (sender == 0) {
      std::this_thread::sleep_for(300ms);
      ::kill(launcher, SIGINT);
      ::_exit(0);
    }
    const int status = spawn(2, {"sh", "-c", "trap 'echo caught; exit 0' INT; while :; do sleep 0.05; done"}, quick());
    ::waitpid(sender, nullptr, 0);
    return status;
  });
  INFO(result.output);
  CHECK(result.exit_code == 128 + SIGINT);
  CHECK(seconds_since(begin) < 5);
  CHECK_THAT(result.output, Catch::Contains("caught"));
}

TEST_CASE("ranks end when their launcher is killed") {
  const scratch_directory scratch;
  const std::string file = scratch.path() + "/ranks";
  const std::string script = "test $HOCKET_RANK = 0 && sleep 0.3 && kill -9 $PPID; exec sleep 60";
  CHECK(spawn_in_a_process(2, "echo $$ >> " + file + "; " + script, quick()).signal == SIGKILL);
  bootstrap::blob content;
  REQUIRE(platform::read_file(file, content));
  const std::string text = bootstrap::blob_text(content);
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1, ++count) {
    CHECK(is_gone(std::atoi(text.c_str() + at)));
  }
  CHECK(count == 2);
}
