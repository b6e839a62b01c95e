// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// unsanitized: sanitizers need more addresses than this leaves
/// @file
/// Asynchronous saves where a rank has no memory for its copy of the state, or can't start a thread.
#include <hocket/checkpoint/store.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/barrier.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pthread.h>
#include <sys/resource.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

using namespace hocket::checkpoint;

constexpr std::size_t most_memory = std::size_t{4} << 30;

/// Limits the memory of this process until destroyed.
class memory_limit {
 public:
  memory_limit() {
    REQUIRE(::getrlimit(RLIMIT_AS, &before_) == 0);
    const rlimit now{most_memory, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_AS, &now) == 0);
  }
  memory_limit(const memory_limit&) = delete;
  memory_limit& operator=(const memory_limit&) = delete;
  ~memory_limit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

/// Lets no thread start until destroyed: their stacks exceed the limit of memory.
class no_more_threads {
 public:
  no_more_threads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t large = before_;
    ::pthread_attr_setstacksize(&large, 2 * most_memory);
    ::pthread_setattr_default_np(&large);
  }
  no_more_threads(const no_more_threads&) = delete;
  no_more_threads& operator=(const no_more_threads&) = delete;
  ~no_more_threads() { ::pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_{};
};

}  // namespace

TEST_CASE("all ranks get the error of one that has no memory for the copy of an asynchronous save") {
  const hocket_test::scratch_directory folder;
  const memory_limit limit;
  hocket_test::on_ranks(3, [&](hocket_test::thread_rank& me) {
    const std::uint64_t bytes = me.rank() == 1 ? 2 * most_memory : 8;
    std::byte elements[8] = {};  // those of the large part are not read, because there is no memory for a copy
    state now;
    now.add(state_part{"part " + std::to_string(me.rank()), element_type::u8, {bytes}, whole_of({bytes}), elements});
    store saved(folder.path(), me.comm());
    for (int attempt = 0; attempt < 2; ++attempt) {
      std::string found;
      try {
        saved.save_async(1, now);
        saved.wait();
      } catch (const hocket::error& cause) {
        found = cause.what();
        me.check(cause.code() == hocket::errc::out_of_memory, "the code");
      }
      me.check(hocket_test::contains(found, "rank 1: there is no memory"), found);
    }
  });
  CHECK(folder.names() == std::vector<std::string>{"lock"});
}

TEST_CASE("where no thread can be started, an asynchronous save is made in its call") {
  const hocket_test::scratch_directory folder;
  const memory_limit limit;
  hocket_test::on_ranks(3, [&](hocket_test::thread_rank& me) {
    std::vector<std::uint32_t> elements(1'000'000, 7), found(elements.size());
    state now, read;
    now.add("elements", elements);
    read.add("elements", found);
    store saved(folder.path(), me.comm());
    hocket::barrier(me.comm());
    {
      std::optional<no_more_threads> none;
      if (me.rank() == 0) none.emplace();
      hocket::barrier(me.comm());
      saved.save_async(1, now);
      me.check(saved.is_done(), "it is done");
      hocket::barrier(me.comm());
    }
    saved.wait();
    me.check(saved.load_newest(read).has_value() && found == elements, "the elements");
  });
}
#endif
