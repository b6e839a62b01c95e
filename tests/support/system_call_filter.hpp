// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A filter of system calls, as container runtimes install them: one call fails in this process from now on.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace hocket_test {

namespace detail {

template <std::size_t Count>
bool install_filter(sock_filter (&rules)[Count]) {
  const sock_fprog program{Count, rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace detail

/// Lets the system call `number` fail with `error` in this process and its children. Returns false if that is not allowed.
inline bool refuse_system_call(long number, int error = ENOSYS) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return detail::install_filter(rules);
}

/// Refuses the calls by which processes sleep on a word of shared memory and wake each other. The operations of the C
/// library remain: it uses private ones, and ends the process if they fail.
inline bool refuse_futex_between_processes() {
  constexpr std::uint32_t operation = offsetof(seccomp_data, args) + sizeof(std::uint64_t);
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(SYS_futex), 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, operation),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAIT, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return detail::install_filter(rules);
}

}  // namespace hocket_test
