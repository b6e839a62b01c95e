// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The macros that all other headers use: the version, the compiler's features, and the namespace.
///
/// Translation units that differ in version, exception support, assertion level, mismatch detection or separate
/// compilation must not share inline functions. All of these are therefore part of the inline namespace's name: such
/// translation units fail to link or coexist, and are never merged silently.
#pragma once

/// Major version.
#define HOCKET_VERSION_MAJOR 0
/// Minor version.
#define HOCKET_VERSION_MINOR 2
/// Patch version.
#define HOCKET_VERSION_PATCH 0

#if __cplusplus < 202002L
#error "hocket needs C++20: compile with -std=c++20 or newer"
#endif

#if defined(__clang__) ? __clang_major__ < 16 : defined(__GNUC__) && __GNUC__ < 12
#error "hocket needs g++ 12 or newer, or clang 16 or newer"
#endif

#if !defined(__linux__)
#error "hocket runs on Linux only for now"
#endif

/// 1 if this translation unit is compiled with exceptions, 0 with -fno-exceptions.
#if defined(__cpp_exceptions)
#define HOCKET_HAS_EXCEPTIONS 1
#else
#define HOCKET_HAS_EXCEPTIONS 0
#endif

/// What is checked at run time beyond the checks of every call: 0 nothing; 1 that no two threads are in one
/// communicator, however briefly; 2 all local checks (in this version the same as 1); 3 also that all ranks make the
/// same call, before a collective moves data. See docs/when-it-fails.md. Must be equal on all ranks.
#ifndef HOCKET_ASSERTION_LEVEL
#ifdef NDEBUG
#define HOCKET_ASSERTION_LEVEL 0
#else
#define HOCKET_ASSERTION_LEVEL 2
#endif
#endif

/// 0 omits the detection of calls that differ between ranks: signatures, their comparison, and the call log, so that
/// flight records contain no calls either. Saves a few nanoseconds per call (bench/mismatch_detection.cpp). Must be
/// equal on all ranks.
#ifndef HOCKET_MISMATCH_DETECTION
#define HOCKET_MISMATCH_DETECTION 1
#endif
#if !HOCKET_MISMATCH_DETECTION && HOCKET_ASSERTION_LEVEL >= 3
#error "hocket: HOCKET_ASSERTION_LEVEL=3 needs mismatch detection: set HOCKET_MISMATCH_DETECTION=1 or a lower level"
#endif

/// If defined, headers only declare functions that need not be compiled in each translation unit. One source that
/// includes <hocket/impl/src.hpp>, or <hocket/impl/src_ucx.hpp> for ranks over UCX, compiles the definitions. The CMake
/// targets hocket::compiled and hocket::compiled_ucx do that, and define this macro for targets that link them. Must be
/// equal in all sources of a program; otherwise the linker misses a function whose name contains `_separate`.
#if defined(HOCKET_SEPARATE_COMPILATION)
#define HOCKET_DETAIL_COMPILATION _separate
#define HOCKET_DECL
#else
#define HOCKET_DETAIL_COMPILATION
/// Marks a function whose definition is in a file impl/*.ipp.
#define HOCKET_DECL inline
#endif

#define HOCKET_DETAIL_JOIN6(a, b, c, d, e, f) a##b##c##d##e##f
#define HOCKET_DETAIL_NAMESPACE(prefix, exceptions, separator, level, mismatch, compilation) \
  HOCKET_DETAIL_JOIN6(prefix, exceptions, separator, level, mismatch, compilation)
#if HOCKET_MISMATCH_DETECTION
#define HOCKET_DETAIL_MISMATCH
#else
#define HOCKET_DETAIL_MISMATCH _no_mismatch_detection
#endif
/// The inline namespace of this configuration.
#define HOCKET_INLINE_NAMESPACE                                                                        \
  HOCKET_DETAIL_NAMESPACE(v0_2_exceptions, HOCKET_HAS_EXCEPTIONS, _assertions, HOCKET_ASSERTION_LEVEL, \
                          HOCKET_DETAIL_MISMATCH, HOCKET_DETAIL_COMPILATION)

#define HOCKET_DETAIL_QUOTE(...) #__VA_ARGS__
#define HOCKET_DETAIL_TEXT(...) HOCKET_DETAIL_QUOTE(__VA_ARGS__)
/// The inline namespace's name as text. Must be equal on ranks that communicate.
#define HOCKET_BUILD HOCKET_DETAIL_TEXT(HOCKET_INLINE_NAMESPACE)

/// Opens namespace hocket and its inline namespace.
#define HOCKET_BEGIN_NAMESPACE \
  namespace hocket {           \
  inline namespace HOCKET_INLINE_NAMESPACE {
/// Closes what `HOCKET_BEGIN_NAMESPACE` opened.
#define HOCKET_END_NAMESPACE \
  }                          \
  }

/// For types that are thrown across shared objects: they must be the same type on both sides.
#define HOCKET_EXPORT_TYPE __attribute__((visibility("default")))

/// For the few functions whose measured performance depends on inlining, or on not inlining.
#define HOCKET_ALWAYS_INLINE inline __attribute__((always_inline))
/// Prevents inlining.
#define HOCKET_NO_INLINE __attribute__((noinline))

/// For functions that kernels may also call; empty for a C++ compiler. Marked functions call only marked functions, so
/// that nvcc needs no --expt-relaxed-constexpr; std::bit_cast and similar functions are replaced.
#if defined(__CUDACC__)
#define HOCKET_HOST_DEVICE __host__ __device__
#else
#define HOCKET_HOST_DEVICE
#endif

/// Before a marked function that calls user-defined functions. If it runs only on the host, those may be host-only,
/// which nvcc would warn about. Kernels check their user-defined functions separately.
#if defined(__CUDACC__)
#define HOCKET_DETAIL_CALLS_USERS _Pragma("nv_exec_check_disable")
#else
#define HOCKET_DETAIL_CALLS_USERS
#endif

/// Before a loop in a kernel whose indices the compiler must know, so that selected elements stay in registers.
#if defined(__CUDA_ARCH__)
#define HOCKET_DETAIL_UNROLL _Pragma("unroll")
#else
#define HOCKET_DETAIL_UNROLL
#endif

/// For functions declared separately from their definitions, where g++ warns about `noinline` with `inline`. They are
/// optimised for size, and the branches that lead to their calls are treated as unlikely.
#define HOCKET_DETAIL_RARE __attribute__((cold))

/// For code that runs at most once in a program: it is optimised for size, and does not use up the compiler's inlining
/// budget for the rest of the translation unit.
#define HOCKET_COLD __attribute__((noinline, cold))
