// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Memory that several processes of one host map. One of them creates it, and the others find it through a ticket.
///
/// It has no name in any file system, so that nothing is left behind however its users end, and the size of /dev/shm
/// does not limit it. In return, the other processes open it through /proc, which requires that they belong to the same
/// user and see the creator under the same process number. It is sealed against shrinking, because access to a page that
/// is gone ends a process by SIGBUS.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/file_size_limit.hpp>
#include <hocket/core/text.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// A range of addresses that the destructor unmaps. Movable.
class mapping {
 public:
  mapping() = default;
  /// Maps `bytes` of `file`, or if that is none, of fresh private memory, for loads and stores; null, with errno set, if
  /// that fails.
  mapping(const file_descriptor& file, std::size_t bytes) noexcept {
    const int kind = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* const begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind, file.get(), 0);
    if (begin == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(begin);
    size_ = bytes;
  }
  mapping(mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Memory created by this process. Zeroed; occupies physical memory page by page, on first access. Movable.
class shared_pages {
 public:
  shared_pages() = default;
  /// Sets `fail` to `out_of_memory` if the memory is not available.
  shared_pages(std::size_t bytes, failure& fail) {
    failure cause = make_file(bytes);
    if (!cause) cause = map(bytes);
    if (cause) fail = no_memory(bytes, "shared memory", cause);
  }

  /// The same, but memory that no other process can open: the ticket is empty.
  static shared_pages unshared(std::size_t bytes, failure& fail) {
    shared_pages result;
    failure cause = exceeds_machine(bytes);
    if (!cause) cause = result.map(bytes);
    if (cause) fail = no_memory(bytes, "memory", cause);
    return result;
  }

  std::byte* data() const noexcept { return here_.data(); }
  std::size_t size() const noexcept { return here_.size(); }

  /// True if the memory is not available because this process can't make a file for it, however much memory is free.
  bool lacks_file() const noexcept { return lacks_file_; }

  /// The data that another process needs for `open_shared_pages`. Valid until `hide`.
  std::vector<std::byte> ticket() const;

  /// Prevents other processes from opening the memory. Existing mappings stay valid.
  void hide() noexcept { file_.reset(); }

 private:
  /// Makes a file of `bytes` bytes without a name. Where a filter of system calls forbids a memfd, it is in /dev/shm, and
  /// occupies its memory at once: a page for which there is no room later would end the process.
  failure make_file(std::size_t bytes) {
    if (failure cause = exceeds_machine(bytes)) return cause;
    if (failure cause = exceeds_file_size_limit(bytes)) {
      lacks_file_ = true;
      return cause;
    }
    file_descriptor file(::memfd_create("hocket", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file) {
      if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return system_failure("ftruncate", errno);
      ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK);  // a protection only: the memory is usable without it
      file_ = std::move(file);
      return {};
    }
    failure cause = system_failure("memfd_create", errno);
    if (errno == EMFILE || errno == ENFILE) return cause;
    file = file_descriptor(::open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (file && ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) == 0) {
      file_ = std::move(file);
      return {};
    }
    hocket::detail::append(cause.reason, {"; ", system_failure("/dev/shm", errno).reason});
    lacks_file_ = true;
    return cause;
  }

  failure map(std::size_t bytes) {
    here_ = mapping(file_, bytes);
    return here_.data() == nullptr ? system_failure("mmap", errno) : failure();
  }

  static failure no_memory(std::size_t bytes, const char* kind, const failure& cause) {
    return make_failure(errc::out_of_memory,
                        hocket::detail::concat({"cannot allocate ", bytes, " bytes of ", kind, ": ", cause.reason}));
  }

  /// Checked because the kernel would grant any amount, and kill a process that touches more than there is.
  static failure exceeds_machine(std::size_t bytes) {
    struct sysinfo all {};
    if (::sysinfo(&all) != 0 || bytes / all.mem_unit <= all.totalram + all.totalswap) return {};
    return system_failure("the machine has less", ENOMEM);
  }

  file_descriptor file_;
  mapping here_;
  bool lacks_file_ = false;
};

namespace detail {

/// The bytes of a ticket, copied from process to process.
struct pages_ticket {
  std::int32_t process;
  std::int32_t descriptor;
  std::uint64_t device;
  std::uint64_t inode;
  std::uint64_t bytes;
};

}  // namespace detail

inline std::vector<std::byte> shared_pages::ticket() const {
  if (!file_) return {};
  struct stat file {};
  ::fstat(file_.get(), &file);
  const detail::pages_ticket result{::getpid(), file_.get(), file.st_dev, file.st_ino, size()};
  const auto bytes = std::as_bytes(std::span(&result, 1));
  return {bytes.begin(), bytes.end()};
}

/// Maps the memory of another process. The mapping stays valid when that process hides or unmaps the memory or exits.
/// Null if the memory can't be opened.
inline mapping open_shared_pages(std::span<const std::byte> ticket) {
  detail::pages_ticket from{};
  if (ticket.size() != sizeof from) return {};
  std::memcpy(&from, ticket.data(), sizeof from);
  const std::string path = hocket::detail::concat({"/proc/", from.process, "/fd/", from.descriptor});
  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat found {};
  if (!file || ::fstat(file.get(), &found) != 0) return {};
  // Process numbers and descriptors are reused; files are not.
  const bool same = found.st_dev == from.device && found.st_ino == from.inode;
  if (!same || static_cast<std::uint64_t>(found.st_size) != from.bytes) return {};
  return {file, from.bytes};
}

}  // namespace platform
HOCKET_END_NAMESPACE
