// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How hocket-perf replaces files of results.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include "../../../tools/hocket-perf/output_file.cpp"

#include <atomic>
#include <csignal>
#include <future>
#include <string>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using hocket_test::read_file;

}  // namespace

TEST_CASE("hocket-perf: can_write returns false for a file that can't be written, and creates none") {
  const hocket_test::scratch_directory folder;
  CHECK_FALSE(perf::can_write("/nowhere/results.json"));
  CHECK(errno == ENOENT);
  CHECK_FALSE(perf::can_write("."));
  CHECK(errno == EISDIR);
  CHECK(perf::can_write("/dev/null"));
  CHECK(perf::can_write(folder.path() + "/new.json"));
  CHECK(folder.names().empty());
  // Opening a pipe would wait for its reader, and closing it would be the end of the content for this reader.
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(perf::can_write(pipe));
}

TEST_CASE("hocket-perf: a reader of a file of results sees all of the old or of the new text") {
  const hocket_test::scratch_directory folder;
  const std::string file = folder.path() + "/results.json";
  const std::string texts[]{std::string(300'000, 'a'), std::string(200'000, 'b')};
  perf::write_file(file, texts[0], "--json");
  std::atomic<bool> stop{false};
  auto parts = std::async(std::launch::async, [&] {
    int found = 0;
    while (!stop) {
      const std::string text = read_file(file);
      if (text != texts[0] && text != texts[1]) ++found;
    }
    return found;
  });
  for (int i = 1; i <= 200; ++i) perf::write_file(file, texts[i % 2], "--json");
  stop = true;
  CHECK(parts.get() == 0);
  CHECK(folder.names().size() == 1);
}

TEST_CASE("hocket-perf: a file of results stays as it was if it can't be replaced") {
  const hocket_test::scratch_directory folder;
  const std::string file = folder.path() + "/results.json";
  perf::write_file(file, "old", "--json");
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  rlimit less = limit;
  less.rlim_cur = 1000;
  ::setrlimit(RLIMIT_FSIZE, &less);
  std::string problem;
  try {
    perf::write_file(file, std::string(100'000, 'x'), "--json");
  } catch (const std::runtime_error& found) {
    problem = found.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &limit);
  ::signal(SIGXFSZ, before);
  CHECK(problem == "--json: cannot write '" + file + "': File too large");
  CHECK(read_file(file) == "old");
  CHECK(folder.names().size() == 1);
}

TEST_CASE("hocket-perf: links and pipes of results remain what they are") {
  const hocket_test::scratch_directory folder;
  const std::string file = folder.path() + "/results.json", link = folder.path() + "/link",
                    pipe = folder.path() + "/pipe";
  REQUIRE(::symlink("results.json", link.c_str()) == 0);
  CHECK(perf::can_write(link));
  for (const char* const text : {"first", "second"}) {
    perf::write_file(link, text, "--json");
    CHECK(read_file(file) == text);
    CHECK(std::filesystem::is_symlink(link));
  }
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  auto read = std::async(std::launch::async, [&] { return read_file(pipe); });
  perf::write_file(pipe, "text", "--json");
  CHECK(read.get() == "text");
  CHECK(std::filesystem::is_fifo(pipe));
}
