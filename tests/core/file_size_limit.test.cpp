// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A limit of the size of files makes functions fail, and does not end the process by SIGXFSZ.
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/shared_pages.hpp>

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace hocket;

constexpr std::size_t limit_of_files = 8192;

/// Something that makes a file of `bytes` bytes in `folder`. Returns whether it has.
struct writer {
  const char* name;
  bool (*write)(const std::string& folder, std::size_t bytes);
};

constexpr writer writers[] = {
    {"shared_pages",
     [](const std::string&, std::size_t bytes) {
       failure cause;
       const platform::shared_pages pages(bytes, cause);
       return !cause && pages.size() == bytes;
     }},
    {"write_file",
     [](const std::string& folder, std::size_t bytes) {
       return !platform::write_file(folder, "whole", std::vector<std::byte>(bytes));
     }},
    {"file_system",
     [](const std::string& folder, std::size_t bytes) {
       platform::file_system files;
       platform::file_descriptor file;
       if (files.open(folder + "/part", platform::file_use::create, file) != 0) return false;
       std::size_t written = 1;
       const std::vector<std::byte> last(1);
       const int error = files.write(file.get(), last, bytes - 1, written);
       files.remove(folder + "/part");
       return error == 0 ? written == 1 : error != EFBIG || written != 0;
     }},
};

}  // namespace

TEST_CASE("nothing that writes a file exceeds the limit of the size of files") {
  const hocket_test::scratch_directory scratch;
  for (const writer& each : writers) {
    for (const std::size_t bytes : {limit_of_files, limit_of_files + 1}) {
      INFO(each.name << " of " << bytes << " bytes");
      const pid_t child = ::fork();
      if (child == 0) {
        const rlimit limit{limit_of_files, limit_of_files};
        ::_exit(::setrlimit(RLIMIT_FSIZE, &limit) != 0 ? 2 : each.write(scratch.path(), bytes) ? 0 : 1);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == (bytes > limit_of_files ? 1 : 0));
    }
  }
}
