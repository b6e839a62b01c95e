// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The same group of ranks, whose operations a profiler shows: Nsight Systems draws a range for each, from its begin to
/// its end on this rank, beside the kernels and copies of the device.
///
/// Included by who wants it, and by nothing else of the library. It needs NVTX 3, headers alone, which CUDA's include folder
/// has; no library is linked but libdl, and without a profiler nothing is made of a range.
#pragma once

#if !__has_include(<nvtx3/nvToolsExt.h>)
#error \
    "hocket: ranges for a profiler need NVTX 3: compile with -isystem FOLDER, where FOLDER has nvtx3/nvToolsExt.h, as CUDA's include folder has"
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

/// Where the ranges of one rank go: a domain of its own, in which the rank is a category, as ranks that are threads share
/// one process.
class range_domain {
 public:
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

  /// Whether somebody looks.
  bool is_seen() const noexcept { return handle_ != nullptr; }

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
  void end(nvtxRangeId_t range) const { nvtxDomainRangeEnd(handle_, range); }

 private:
  const nvtxDomainHandle_t handle_;  ///< null: no profiler
  const std::uint32_t category_;
};

/// Operations that were started overlap, and another thread may end them: their ranges are no stack.
template <class Endpoints>
class ranged_endpoints : public forwarding_endpoints<Endpoints> {
  using base = forwarding_endpoints<Endpoints>;

 public:
  static constexpr bool observes_only = transport::observes_only<Endpoints>;

  ranged_endpoints(std::unique_ptr<Endpoints> inner, const transport::open_parameters&,
                   std::shared_ptr<range_domain> domain)
      : base(std::move(inner)), domain_(std::move(domain)) {}

  void on_operation(std::uint32_t sequence, const char* operation, const char* algorithm, std::size_t bytes) {
    if (domain_->is_seen()) ranges_.insert_or_assign(sequence, domain_->begin(operation, algorithm, bytes));
    if constexpr (transport::observes_operations<Endpoints>)
      this->inner().on_operation(sequence, operation, algorithm, bytes);
  }
  void on_step(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    if constexpr (transport::observes_steps<Endpoints>) this->inner().on_step(sequence, lane, what, bytes);
  }
  void leave(std::uint32_t sequence) {
    if (const auto range = ranges_.find(sequence); range != ranges_.end()) {
      domain_->end(range->second);
      ranges_.erase(range);
    }
    base::leave(sequence);
  }

 private:
  const std::shared_ptr<range_domain> domain_;
  std::map<std::uint32_t, nvtxRangeId_t> ranges_;  ///< of operations under way
};

template <class Domain>
using ranged = adapted_domain<Domain, ranged_endpoints<typename Domain::endpoints_type>, range_domain>;

}  // namespace adaptor

/// A communicator of the ranks of `comm` whose operations, and those of its parts, are ranges in the domain `hocket` of
/// NVTX: named by collective and algorithm, with the bytes of the vector as payload and this rank as category. A call that
/// takes several operations, as one that compares ranks first, has a range for each; messages of `send` and `recv` have none.
///
/// Collective over `comm`. **Cost.** Where no profiler is attached, a comparison for each operation; else a short text.
/// **Errors.** As `split`.
template <class Domain>
communicator<adaptor::ranged<Domain>> with_nvtx(const communicator<Domain>& comm,
                                                const std::source_location& site = std::source_location::current()) {
  const int rank_in_world = detail::communicator_access::state(comm).domain()->rank();
  return detail::adapt<adaptor::ranged<Domain>>(comm, std::make_shared<adaptor::range_domain>(rank_in_world), site);
}

HOCKET_END_NAMESPACE
