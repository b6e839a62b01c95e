// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files that a user names: what is refused and why, and the content of those that are not, also while they change.
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/input_file.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using hocket::platform::file_kinds;
using hocket::platform::input_file;
using hocket::platform::read_whole;
using hocket_test::contains;

namespace {

constexpr std::size_t most_bytes = 200'000;

/// A directory with a file of each kind.
struct files_of_each_kind {
  hocket_test::scratch_directory folder;

  files_of_each_kind() {
    folder.write("empty", "");
    folder.write("one", "x");
    folder.write("most", std::string(most_bytes, 'm'));
    folder.write("too_long", std::string(most_bytes + 1, 'l'));
    folder.write("unreadable", "secret");
    ::chmod(at("unreadable").c_str(), 0);
    REQUIRE(::mkfifo(at("pipe").c_str(), 0600) == 0);
    std::filesystem::create_symlink("one", at("link"));
    std::filesystem::create_symlink("nothing", at("dangling"));
    folder.write("sparse", "");
    REQUIRE(::truncate(at("sparse").c_str(), off_t{1} << 40) == 0);  // takes no space on the disk
  }
  std::string at(const std::string& name) const { return name.front() == '/' ? name : folder.path() + '/' + name; }
};

}  // namespace

TEST_CASE("a file that can't be read as a whole is refused with the reason, immediately") {
  const files_of_each_kind files;
  struct refusal {
    std::string name;
    std::string reason;  ///< empty: it is read
  };
  const refusal cases[] = {{"nothing", "No such file or directory"},
                           {"dangling", "No such file or directory"},
                           {"one/nothing", "Not a directory"},
                           {"/", "it is a folder, not a regular file"},
                           {"/dev/zero", "it is a device, not a regular file"},
                           {"/dev/null", "it is a device, not a regular file"},
                           {"pipe", "it is a pipe, not a regular file"},
                           {"empty", "it is empty"},
                           {"too_long", "it has more than 200000 bytes"},
                           {"sparse", "it has more than 200000 bytes"},
                           {"unreadable", ::geteuid() == 0 ? "" : "Permission denied"},
                           {"one", ""},
                           {"link", ""},
                           {"most", ""},
                           {"/proc/self/status", ""}};
  for (const auto& [name, reason] : cases) {
    INFO(name);
    std::string content;
    CHECK(read_whole(files.at(name), file_kinds::regular, most_bytes, content) == reason);
    // The function for files of a shared directory accepts the same kinds, of any length, empty ones included.
    if (name == "sparse") continue;
    std::vector<std::byte> bytes;
    const bool has_content = reason.empty() || contains(reason, "it is empty") || contains(reason, "more than");
    CHECK(hocket::platform::read_file(files.at(name), bytes) == has_content);
    if (reason.empty() && name.front() != '/') CHECK(bytes.size() == content.size());
  }
}

TEST_CASE("the whole content of a file is read, whatever its length") {
  const hocket_test::scratch_directory folder;
  for (const std::size_t length : {1U, 2U, 65534U, 65535U, 65536U, 65537U, 131072U, 199'999U, 200'000U}) {
    std::string written;
    for (std::size_t i = 0; i < length; ++i) written += static_cast<char>(i * 7 / 3);
    folder.write("file", written);
    std::string content;
    INFO(length);
    CHECK(read_whole(folder.path() + "/file", file_kinds::regular, most_bytes, content) == "");
    CHECK(content == written);
  }
}

TEST_CASE("a file that grows, shrinks or is replaced after it was opened yields what it has when it is read") {
  const hocket_test::scratch_directory folder;
  const std::string path = folder.path() + "/file";
  struct change {
    const char* name;
    void (*make)(const std::string& path);
    std::string content;
    std::string problem;
  };
  const std::string before(100'000, 'b');
  const change changes[] = {
      {"grows", [](const std::string& at) { REQUIRE(::truncate(at.c_str(), 100'001) == 0); },
       before + std::string(1, '\0'), ""},
      {"shrinks", [](const std::string& at) { REQUIRE(::truncate(at.c_str(), 70'000) == 0); }, before.substr(0, 70'000),
       ""},
      {"becomes empty", [](const std::string& at) { REQUIRE(::truncate(at.c_str(), 0) == 0); }, "", "it is empty"},
      {"outgrows the limit", [](const std::string& at) { REQUIRE(::truncate(at.c_str(), 300'000) == 0); }, "",
       "it has more than 200000 bytes"},
      {"is removed", [](const std::string& at) { REQUIRE(::unlink(at.c_str()) == 0); }, before, ""}};
  for (const change& each : changes) {
    INFO(each.name);
    folder.write("file", before);
    input_file file(path, file_kinds::regular);
    REQUIRE(file);
    CHECK(file.size() == before.size());
    each.make(path);
    std::string content;
    CHECK(read_whole(file, most_bytes, content) == each.problem);
    if (each.problem.empty()) CHECK(content == each.content);
  }
}

TEST_CASE("a pipe is read to its end where pipes are accepted, and devices are refused there, too") {
  const files_of_each_kind files;
  const std::string written(100'000, 'p');  // more than a pipe holds
  std::thread writer([&] {
    const hocket::platform::file_descriptor pipe(::open(files.at("pipe").c_str(), O_WRONLY | O_CLOEXEC));
    hocket::platform::write_all(pipe.get(), std::as_bytes(std::span(written)));
  });
  std::string content;
  const std::string problem = read_whole(files.at("pipe"), file_kinds::regular_or_pipe, most_bytes, content);
  writer.join();
  CHECK(problem == "");
  CHECK(content == written);
  const std::string refused = "neither a regular file nor a pipe";
  CHECK(contains(read_whole("/dev/zero", file_kinds::regular_or_pipe, most_bytes, content), refused));
  CHECK(contains(read_whole("/", file_kinds::regular_or_pipe, most_bytes, content), "it is a folder, " + refused));
}

TEST_CASE("a file whose bytes can't be read has a problem instead of an end") {
  // Position 0 of the own memory is not mapped: reading fails with an input/output error.
  std::string content;
  CHECK(read_whole("/proc/self/mem", file_kinds::regular, most_bytes, content) == "Input/output error");
}
