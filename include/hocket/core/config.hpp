// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The macros that every other header stands on: the version, what the compiler offers, and the namespace.
///
/// Two translation units that were built with other versions, with and without exceptions, with other assertion levels,
/// with and without mismatch detection, or with and without separate compilation, must not share inline functions. So all of that is part of the inline
/// namespace's name: mixing them fails to link, or lives side by side, and never merges silently.
#pragma once

#define HOCKET_VERSION_MAJOR 0
#define HOCKET_VERSION_MINOR 2
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

/// How much is checked at run time beyond what every call checks anyway:
/// 0 nothing, 1 that no two threads are in one communicator, however close together they come, 2 all local checks (the
/// same ones, in this version), 3 also checks that communicate: each collective compares what all ranks have called
/// before it moves data. docs/when-it-fails.md has more. Must be equal on all ranks.
#ifndef HOCKET_ASSERTION_LEVEL
#ifdef NDEBUG
#define HOCKET_ASSERTION_LEVEL 0
#else
#define HOCKET_ASSERTION_LEVEL 2
#endif
#endif

/// 0 leaves out what finds calls that differ between ranks: signatures, their comparison, and the log of calls, with which
/// the flight recorder loses its calls too. What that saves is measured by bench/mismatch_detection.cpp: a few nanoseconds.
/// Must be equal on all ranks.
#ifndef HOCKET_MISMATCH_DETECTION
#define HOCKET_MISMATCH_DETECTION 1
#endif
#if !HOCKET_MISMATCH_DETECTION && HOCKET_ASSERTION_LEVEL >= 3
#error "hocket: HOCKET_ASSERTION_LEVEL=3 compares calls, and HOCKET_MISMATCH_DETECTION=0 leaves that out: choose one"
#endif

/// Defined: what need not be compiled anew in each translation unit is only declared by headers. Its definitions are
/// compiled once, in the one source that includes <hocket/impl/src.hpp>, or <hocket/impl/src_ucx.hpp> for ranks over UCX:
/// the CMake targets hocket::compiled and hocket::compiled_ucx do that, and define this for those that link them. Must be
/// equal in all sources of a program; where it is not, a function is missing when linking, and its name says `_separate`.
#if defined(HOCKET_SEPARATE_COMPILATION)
#define HOCKET_DETAIL_COMPILATION _separate
#define HOCKET_DECL
#else
#define HOCKET_DETAIL_COMPILATION
/// Before a function whose definition is in a file impl/*.ipp.
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
#define HOCKET_INLINE_NAMESPACE                                                                        \
  HOCKET_DETAIL_NAMESPACE(v0_2_exceptions, HOCKET_HAS_EXCEPTIONS, _assertions, HOCKET_ASSERTION_LEVEL, \
                          HOCKET_DETAIL_MISMATCH, HOCKET_DETAIL_COMPILATION)

/// The same as text: what ranks that talk to each other must have alike.
#define HOCKET_DETAIL_QUOTE(...) #__VA_ARGS__
#define HOCKET_DETAIL_TEXT(...) HOCKET_DETAIL_QUOTE(__VA_ARGS__)
#define HOCKET_BUILD HOCKET_DETAIL_TEXT(HOCKET_INLINE_NAMESPACE)

#define HOCKET_BEGIN_NAMESPACE \
  namespace hocket {           \
  inline namespace HOCKET_INLINE_NAMESPACE {
#define HOCKET_END_NAMESPACE \
  }                          \
  }

/// For types that are thrown across shared objects: they must be the same type on both sides.
#define HOCKET_EXPORT_TYPE __attribute__((visibility("default")))

/// For the few functions that must, or must not, be inlined for the measured figures to hold.
#define HOCKET_ALWAYS_INLINE inline __attribute__((always_inline))
#define HOCKET_NO_INLINE __attribute__((noinline))

/// For functions that kernels may call as well: nothing to a plain C++ compiler. What is marked calls marked functions alone,
/// so that nvcc needs no --expt-relaxed-constexpr; std::bit_cast and its like are not, and have forms of their own here.
#if defined(__CUDACC__)
#define HOCKET_HOST_DEVICE __host__ __device__
#else
#define HOCKET_HOST_DEVICE
#endif

/// Before a marked function that calls functions of its users. These may be for the host only where it is called there
/// only, and nvcc would warn; kernels check what they are given by themselves.
#if defined(__CUDACC__)
#define HOCKET_DETAIL_CALLS_USERS _Pragma("nv_exec_check_disable")
#else
#define HOCKET_DETAIL_CALLS_USERS
#endif

/// Before a loop of a kernel whose indices must be known to the compiler, so that what they select stays in registers.
#if defined(__CUDA_ARCH__)
#define HOCKET_DETAIL_UNROLL _Pragma("unroll")
#else
#define HOCKET_DETAIL_UNROLL
#endif

/// For functions declared apart from their definitions, where g++ warns of `noinline` beside `inline`: laid out for size, and
/// what leads to their calls is taken for rare.
#define HOCKET_DETAIL_RARE __attribute__((cold))

/// For what happens once in a program's life, if at all: laid out for size, and kept from taking the room that inlining
/// has elsewhere in the translation unit.
#define HOCKET_COLD __attribute__((noinline, cold))
