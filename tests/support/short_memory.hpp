// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Replaces operator new by one that fails on request, in the thread that requested it. Include it in one source.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

/// Which of this thread's next allocations fails; if `for_good`, all later ones fail, too.
struct shortage {
  long left = -1;  ///< negative: none
  bool for_good = false;
  bool has_begun = false;
  std::size_t bytes = 0;  ///< size of the first allocation that failed
};
thread_local shortage planned;

bool fails_now(std::size_t bytes) noexcept {
  if (planned.left < 0) return false;
  if (planned.left > 0) return --planned.left, false;
  if (!planned.has_begun) planned.bytes = bytes;
  planned.has_begun = true;
  if (!planned.for_good) planned.left = -1;
  return true;
}

void* memory_or_null(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  constexpr std::size_t most = std::size_t{1} << 36;  // sanitizers abort a program that requests much more
  if (bytes > most || fails_now(bytes)) return nullptr;
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

void* memory(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  if (void* const made = memory_or_null(bytes, alignment)) return made;
  throw std::bad_alloc();
}

/// Suspends the shortage during its lifetime, for allocations of the test itself.
class plenty {
 public:
  plenty() noexcept : kept_(std::exchange(planned, {})) {}
  plenty(const plenty&) = delete;
  plenty& operator=(const plenty&) = delete;
  ~plenty() { planned = kept_; }

 private:
  const shortage kept_;
};

}  // namespace

// Not inlined: g++ would compare the bodies of operator new and operator delete (mismatched allocation).
[[gnu::noinline]] void* operator new(std::size_t bytes) { return memory(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return memory(bytes); }
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return memory_or_null(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return memory_or_null(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t to) {
  return memory(bytes, static_cast<std::size_t>(to));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t to, const std::nothrow_t&) noexcept {
  return memory_or_null(bytes, static_cast<std::size_t>(to));
}
[[gnu::noinline]] void operator delete(void* made) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete[](void* made) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete(void* made, std::size_t) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete[](void* made, std::size_t) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete(void* made, std::align_val_t) noexcept { std::free(made); }
[[gnu::noinline]] void operator delete(void* made, std::size_t, std::align_val_t) noexcept { std::free(made); }
