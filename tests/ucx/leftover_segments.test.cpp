// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Segments that killed processes have left behind: the next start removes only these.
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/platform/directory.hpp>
#include <hocket/transport/ucx/workarounds/leftover_segments.hpp>

#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace ucx_test;
namespace platform = hocket::platform;

/// Creates a file of one page whose last change was `age` ago.
platform::file_descriptor plant(const std::string& path, std::chrono::seconds age) {
  platform::file_descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  REQUIRE(file);
  REQUIRE(::ftruncate(file.get(), 4096) == 0);
  const timespec then[2] = {{::time(nullptr) - age.count(), 0}, {::time(nullptr) - age.count(), 0}};
  REQUIRE(::futimens(file.get(), then) == 0);
  return file;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Returns whether this system supports leases, which show that a file is in use: without them, nothing is removed.
bool has_leases(const std::string& directory) {
  const std::string path = directory + "/probe";
  plant(path, 0s);
  const platform::file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool granted = ::fcntl(file.get(), F_SETLEASE, F_RDLCK) == 0;
  ::unlink(path.c_str());
  if (!granted) WARN("left out: there are no leases on files in " << directory);
  return granted;
}

/// A directory in shared memory that is removed at the end.
struct scratch {
  const std::string path = "/dev/shm/hocket-test-" + platform::random_name();
  scratch() { REQUIRE(::mkdir(path.c_str(), 0700) == 0); }
  ~scratch() { platform::remove_flat_directory(path); }
};

}  // namespace

TEST_CASE("only old segments of this user that no process uses are removed") {
  const scratch place;
  if (!has_leases(place.path)) return;
  const auto path = [&](const char* name) { return place.path + '/' + name; };
  plant(path("ucx_shm_posix_old"), 61s);
  plant(path("ucx_shm_posix_young"), 50s);
  plant(path("another_program"), 1000s);
  const auto open = plant(path("ucx_shm_posix_open"), 1000s);
  auto mapped = plant(path("ucx_shm_posix_mapped"), 1000s);
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, mapped.get(), 0);
  REQUIRE(memory != MAP_FAILED);
  mapped.reset();
  REQUIRE(::symlink("ucx_shm_posix_young", path("ucx_shm_posix_link").c_str()) == 0);
  REQUIRE(::mkdir(path("ucx_shm_posix_directory").c_str(), 0700) == 0);
  if (::geteuid() == 0) {
    plant(path("ucx_shm_posix_of_another_user"), 1000s);
    REQUIRE(::chown(path("ucx_shm_posix_of_another_user").c_str(), 12345, 12345) == 0);
  }
  const auto before = platform::list_directory(place.path);
  hocket::ucx::remove_leftover_segments(place.path);
  std::set<std::string> gone(before.begin(), before.end());
  for (const auto& name : platform::list_directory(place.path)) gone.erase(name);
  CHECK(gone == std::set<std::string>{"ucx_shm_posix_old"});
  ::munmap(memory, 4096);
  hocket::ucx::remove_leftover_segments(place.path);
  CHECK_FALSE(exists(path("ucx_shm_posix_mapped")));
  CHECK(exists(path("ucx_shm_posix_open")));
  ::rmdir(path("ucx_shm_posix_directory").c_str());
}

TEST_CASE("a missing directory is ignored") { hocket::ucx::remove_leftover_segments("/no/such/place"); }

TEST_CASE("start-up removes segments of killed processes") {
  const scratch place;
  if (!has_leases(place.path)) return;
  const std::string path = "/dev/shm/ucx_shm_posix_" + platform::random_name();
  plant(path, 1000s);
  CHECK(run_ranks(2, shared_memory, [](communicator& comm, findings&) { hocket::barrier(comm); }) == "");
  CHECK_FALSE(exists(path));
  ::unlink(path.c_str());
}
