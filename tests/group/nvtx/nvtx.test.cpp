// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nvtx
//
// Ranges for a profiler, as it sees them: NVTX uses a tool that is linked into the program like one that Nsight loads.
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/core/request.hpp>
#include <hocket/group/nvtx.hpp>
#include <hocket/group/split.hpp>
#include <hocket/selection/algorithm.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <vector>

using namespace hocket_test;

namespace {

struct seen_range {
  std::string text;
  std::uint32_t category = 0;
  std::uint64_t payload = 0;
  int begin = 0;  ///< position in the sequence of all begins and ends
  int end = 0;
};

/// Records what a profiler would draw.
class tool {
 public:
  void clear() {
    const std::lock_guard lock(mutex_);
    ranges_.clear();
    categories_.clear();
    wrong_ends_ = 0;
  }
  nvtxRangeId_t begin(const nvtxEventAttributes_t& range) {
    const std::lock_guard lock(mutex_);
    ranges_.push_back({range.message.ascii, range.category, range.payload.ullValue, ++clock_, 0});
    return ranges_.size();
  }
  void end(nvtxRangeId_t range) {
    const std::lock_guard lock(mutex_);
    if (range == 0 || range > ranges_.size() || ranges_[range - 1].end != 0) {
      ++wrong_ends_;
    } else {
      ranges_[range - 1].end = ++clock_;
    }
  }
  void name(std::uint32_t category, const char* text) {
    const std::lock_guard lock(mutex_);
    categories_[category] = text;
  }
  void count_domains(int more) {
    const std::lock_guard lock(mutex_);
    domains_ += more;
  }

  std::vector<seen_range> of_rank(int rank) {
    const std::lock_guard lock(mutex_);
    std::vector<seen_range> result;
    for (const seen_range& each : ranges_) {
      if (categories_[each.category] == "rank " + std::to_string(rank)) result.push_back(each);
    }
    return result;
  }
  int wrong_ends() const { return wrong_ends_; }
  int domains() const { return domains_; }

 private:
  std::mutex mutex_;
  std::vector<seen_range> ranges_;
  std::map<std::uint32_t, std::string> categories_;
  int clock_ = 0;
  int wrong_ends_ = 0;
  int domains_ = 0;
};

tool& profiler() {
  static tool one;
  return one;
}

nvtxDomainHandle_t create_domain(const char* name) {
  if (std::string(name) != "hocket") return nullptr;
  profiler().count_domains(1);
  return reinterpret_cast<nvtxDomainHandle_t>(&profiler());
}
void destroy_domain(nvtxDomainHandle_t) { profiler().count_domains(-1); }
void name_category(nvtxDomainHandle_t, std::uint32_t category, const char* name) { profiler().name(category, name); }
nvtxRangeId_t begin_range(nvtxDomainHandle_t, const nvtxEventAttributes_t* range) { return profiler().begin(*range); }
void end_range(nvtxDomainHandle_t, nvtxRangeId_t range) { profiler().end(range); }

/// Puts the tool's functions into NVTX's table, as the library of a tool does when NVTX has loaded it.
int attach(NvtxGetExportTableFunc_t table_of) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  const auto put = [&](unsigned at, auto* function) { *table[at] = reinterpret_cast<NvtxFunctionPointer>(function); };
  put(NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  put(NVTX_CBID_CORE2_DomainDestroy, &destroy_domain);
  put(NVTX_CBID_CORE2_DomainNameCategoryA, &name_category);
  put(NVTX_CBID_CORE2_DomainRangeStartEx, &begin_range);
  put(NVTX_CBID_CORE2_DomainRangeEnd, &end_range);
  return 1;
}

std::vector<std::string> texts_of(const std::vector<seen_range>& ranges) {
  std::vector<std::string> texts;
  for (const seen_range& each : ranges) texts.push_back(each.text);
  return texts;
}

/// Sets the pointer by which NVTX finds a tool within the program when it is first called.
const bool attached = [] {
  InitializeInjectionNvtx2_fnptr = &attach;
  return true;
}();

}  // namespace

TEST_CASE("each operation has a range with the collective's name, its algorithm, its bytes and the rank") {
  for (const int ranks : {1, 2, 3}) {
    profiler().clear();
    on_ranks(ranks, [&](thread_rank& me) {
      auto comm = hocket::with_nvtx(me.comm());
      std::vector<float> data(1000, 1.0F);
      hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::ring));
      std::vector<int> one{me.rank()}, all(static_cast<std::size_t>(ranks));
      hocket::all_gather(comm, one, all, hocket::with(hocket::direct));
      double small = 1;
      hocket::all_reduce(comm, hocket::in_place(std::span(&small, 1)), std::plus<>{});
      me.check(small == ranks && data[999] == static_cast<float>(ranks), "a wrong sum");
    });
    INFO(ranks << " ranks");
    for (int rank = 0; rank < ranks; ++rank) {
      const auto ranges = profiler().of_rank(rank);
      const auto texts = texts_of(ranges);
      REQUIRE(attached);
      REQUIRE(texts.size() == 3);
      CHECK(texts[0] == "all_reduce: ring");
      CHECK(texts[1] == "all_gather: direct");
      CHECK(texts[2].find("all_reduce: ") == 0);
      CHECK(ranges[0].payload == 4000);
      CHECK(ranges[1].payload == 4 * static_cast<std::uint64_t>(ranks));
      CHECK(ranges[2].payload == 8);
      int before = 0;
      for (const seen_range& each : ranges) {
        CHECK(each.begin > before);
        CHECK(each.end > each.begin);
        before = each.end;
      }
    }
    CHECK(profiler().wrong_ends() == 0);
    CHECK(profiler().domains() == 0);
  }
}

TEST_CASE("each of several operations in flight has its own range, and so have operations of a part") {
  profiler().clear();
  on_ranks(3, [&](thread_rank& me) {
    auto comm = hocket::with_nvtx(me.comm());
    std::vector<float> a(5000, 1.0F), b(5000, 1.0F);
    auto first = hocket::all_reduce_async(comm, hocket::in_place(a), std::plus<>{}, hocket::with(hocket::ring));
    auto second = hocket::all_reduce_async(comm, hocket::in_place(b), std::plus<>{}, hocket::with(hocket::ring));
    second.wait();
    first.wait();
    const auto part = hocket::split(hocket::with_faults(comm, {}), hocket::color{me.rank()});
    hocket::all_reduce(part, hocket::in_place(a), std::plus<>{}, hocket::with(hocket::ring));
  });
  for (int rank = 0; rank < 3; ++rank) {
    const auto ranges = profiler().of_rank(rank);
    int sums = 0;
    for (const seen_range& each : ranges) {
      CHECK(each.end > each.begin);
      sums += each.text == "all_reduce: ring" && each.payload == 20000 ? 1 : 0;
    }
    CHECK(sums == 3);
  }
  CHECK(profiler().wrong_ends() == 0);
}

TEST_CASE("a call that fails ends its range") {
  profiler().clear();
  on_ranks(2, [&](thread_rank& me) {
    auto comm = hocket::with_nvtx(me.comm());
    std::vector<float> data(5000, 1.0F);
    std::error_code code;
    if (me.rank() == 0) comm.abort();
    hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::ring), code);
    me.check(static_cast<bool>(code), "no error");
  });
  for (int rank = 0; rank < 2; ++rank) {
    for (const seen_range& each : profiler().of_rank(rank)) CHECK(each.end > each.begin);
  }
  CHECK(profiler().wrong_ends() == 0);
  CHECK(profiler().domains() == 0);
}
