// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `HOCKET_DETAIL_INSTANTIATE(domain)` instantiates what communicators on one transport need for any element type.
#pragma once

#include <hocket/group/any_transport.hpp>

#include <cstddef>
#include <memory>
#include <source_location>
#include <string>

// clang-format off
#define HOCKET_DETAIL_INSTANTIATE(...)                                                                               \
  HOCKET_BEGIN_NAMESPACE                                                                                             \
  namespace detail {                                                                                                 \
  template class communicator_state<__VA_ARGS__>;                                                                    \
  template outcome run_call(const communicator<__VA_ARGS__>&, const host_call&, const call_settings&,                \
                            const std::source_location&);                                                            \
  template request start_call(const communicator<__VA_ARGS__>&, const host_call&, const call_settings&,              \
                              const std::source_location&);                                                          \
  template outcome run_message(const communicator<__VA_ARGS__>&, const message_spec&, const call_settings&,          \
                               const std::source_location&);                                                         \
  template request start_message(const communicator<__VA_ARGS__>&, const message_spec&, const call_settings&,        \
                                 const std::source_location&);                                                       \
  template outcome wait_slow_path(const push_exchange<communicator_state<__VA_ARGS__>>&, const call_site&,           \
                                  stop_query, int);                                                                  \
  HOCKET_DETAIL_INSTANTIATE_EXCEPTIONS(__VA_ARGS__)                                                                  \
  template outcome refuse_entry(communicator_state<__VA_ARGS__>&, const call_site&);                                 \
  template std::string explain_request(const communicator<__VA_ARGS__>&, const call_request&, const call_settings&); \
  template std::shared_ptr<std::byte> allocate_bytes(const communicator<__VA_ARGS__>&, std::size_t, std::size_t,     \
                                                     std::size_t, const std::source_location&);                      \
  template communicator<__VA_ARGS__> shrink_to_survivors(const communicator<__VA_ARGS__>&, const call_settings&,     \
                                                         const std::source_location&);                               \
  }                                                                                                                  \
  template std::string flight_record(const communicator<__VA_ARGS__>&);                                              \
  template communicator<__VA_ARGS__> split(const communicator<__VA_ARGS__>&, color, key,                             \
                                           const std::source_location&);                                             \
  HOCKET_END_NAMESPACE
#if HOCKET_HAS_EXCEPTIONS
#define HOCKET_DETAIL_INSTANTIATE_EXCEPTIONS(...) \
  template outcome end_by_exception(communicator_state<__VA_ARGS__>&, const call_site&);
#else
#define HOCKET_DETAIL_INSTANTIATE_EXCEPTIONS(...)
#endif
// clang-format on
