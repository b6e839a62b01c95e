// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Replaces operator new by one that fails when it is told to, on the thread that told it. For one source of a program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace {

/// Which of this thread's next allocations fails; those behind it do, too, if `for_good`.
struct shortage {
  long left = -1;  ///< negative: none
  bool for_good = false;
  bool has_begun = false;
  std::size_t bytes = 0;  ///< that were asked for when it began
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
  constexpr std::size_t most = std::size_t{1} << 36;  // sanitizers end a program that asks for much more
  if (bytes > most || fails_now(bytes)) return nullptr;
  return std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
}

void* memory(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  if (void* const made = memory_or_null(bytes, alignment)) return made;
  throw std::bad_alloc();
}

/// No shortage, as long as this lives, for what is a test's own.
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

// Not inlined: g++ would compare what is inside of one with what is inside of the other.
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
