// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Communicators of the same ranks with profiler ranges: Nsight Systems draws a range for each operation, from its
/// beginning to its end on this rank, next to the kernels and copies of the device.
///
/// Optional: no other header of the library includes this header. It needs only the headers of NVTX 3, which are in
/// CUDA's include folder, and libdl; without a profiler, ranges do nothing.
#pragma once

#if !__has_include(<nvtx3/nvToolsExt.h>)
#error \
    "hocket: profiler ranges need NVTX 3: compile with -isystem FOLDER, where FOLDER contains nvtx3/nvToolsExt.h, such as CUDA's include folder"
#endif

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/adapted.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/transport/adaptor/forwarding.hpp>
#include <hocket/transport/concept.hpp>

#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace adaptor {

/// The NVTX domain for the ranges of one rank. The rank is a category, because ranks that are threads share one
/// process.
class range_domain {
 public:
  /// The domain for the ranges of rank `rank`.
  explicit range_domain(int rank)
      : handle_(nvtxDomainCreateA("hocket")), category_(static_cast<std::uint32_t>(rank) + 1) {
    if (handle_ != nullptr)
      nvtxDomainNameCategoryA(handle_, category_, hocket::detail::concat({"rank ", rank}).c_str());
  }
  range_domain(const range_domain&) = delete;
  range_domain& operator=(const range_domain&) = delete;
  ~range_domain() {
    if (handle_ != nullptr) nvtxDomainDestroy(handle_);
  }

  /// True if a profiler is attached.
  bool is_seen() const noexcept { return handle_ != nullptr; }

  /// Begins the range of an operation.
  nvtxRangeId_t begin(const char* operation, const char* algorithm, std::size_t bytes) const {
    const std::string text = hocket::detail::concat({operation, ": ", algorithm});
    nvtxEventAttributes_t range{};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.category = category_;
    range.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    range.payload.ullValue = bytes;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = text.c_str();
    return nvtxDomainRangeStartEx(handle_, &range);
  }
  void end(nvtxRangeId_t range) const { nvtxDomainRangeEnd(handle_, range); }  ///< ends a range

 private:
  const nvtxDomainHandle_t handle_;  ///< null: no profiler
  const std::uint32_t category_;
};

/// Ranges of operations are not nested, because started operations overlap and another thread may end them.
template <class Endpoints>
class ranged_endpoints : public forwarding_endpoints<Endpoints> {
  using base = forwarding_endpoints<Endpoints>;

 public:
  static constexpr bool observes_only = transport::observes_only<Endpoints>;  ///< as in the inner endpoints

  /// Adapts `inner`.
  ranged_endpoints(std::unique_ptr<Endpoints> inner, const transport::open_parameters&,
                   std::shared_ptr<range_domain> domain)
      : base(std::move(inner)), domain_(std::move(domain)) {}

  /// Begins the range of an operation.
  void on_operation(std::uint32_t sequence, const char* operation, const char* algorithm, std::size_t bytes) {
    if (domain_->is_seen()) ranges_.insert_or_assign(sequence, domain_->begin(operation, algorithm, bytes));
    if constexpr (transport::observes_operations<Endpoints>)
      this->inner().on_operation(sequence, operation, algorithm, bytes);
  }
  /// Passes a completed step on.
  void on_step(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    if constexpr (transport::observes_steps<Endpoints>) this->inner().on_step(sequence, lane, what, bytes);
  }
  /// Ends the range of an operation.
  void leave(std::uint32_t sequence) {
    if (const auto range = ranges_.find(sequence); range != ranges_.end()) {
      domain_->end(range->second);
      ranges_.erase(range);
    }
    base::leave(sequence);
  }

 private:
  const std::shared_ptr<range_domain> domain_;
  std::map<std::uint32_t, nvtxRangeId_t> ranges_;  ///< of active operations
};

/// The domain of a communicator that `with_nvtx` returns.
template <class Domain>
using ranged = adapted_domain<Domain, ranged_endpoints<typename Domain::endpoints_type>, range_domain>;

}  // namespace adaptor

/// Returns a communicator of the ranks of `comm` whose operations, and those of communicators split from it, are ranges
/// in the NVTX domain `hocket`: named by collective and algorithm, with the vector's bytes as payload and the rank as
/// category. A call of several operations, such as one that compares ranks first, has one range for each; messages of
/// `send` and `recv` have none.
/// Collective over `comm`. **Cost.** Without a profiler, one comparison per operation; else formatting a short text.
/// **Errors.** Like `split`.
template <class Domain>
communicator<adaptor::ranged<Domain>> with_nvtx(const communicator<Domain>& comm,
                                                const std::source_location& site = std::source_location::current()) {
  const int rank_in_world = detail::communicator_access::state(comm).domain()->rank();
  return detail::adapt<adaptor::ranged<Domain>>(comm, std::make_shared<adaptor::range_domain>(rank_in_world), site);
}

HOCKET_END_NAMESPACE
