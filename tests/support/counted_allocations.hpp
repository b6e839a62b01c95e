// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Replaces operator new by one that counts allocations per thread. Include it in one source of a program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::size_t allocations = 0;

void* counted(std::size_t bytes) {
  ++allocations;
  if (void* const made = std::malloc(bytes == 0 ? 1 : bytes)) return made;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
// Callers that use std::nothrow (such as std::stable_sort) must get memory from the same allocator.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return ++allocations, std::malloc(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return ++allocations, std::malloc(bytes); }
void operator delete(void* made) noexcept { std::free(made); }
void operator delete[](void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
void operator delete[](void* made, std::size_t) noexcept { std::free(made); }
