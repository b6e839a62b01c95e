// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a rank writes of a job: which files, which lines, and that a disk without space does not end the job.
#include "observe/file_size_limit.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"

#include <hocket/observe/job_records.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace hocket::observe;
using hocket_test::contains;
using hocket_test::scratch_directory;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t result = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++result;
  return result;
}

/// Takes what is written to standard error, up to the size of a pipe.
class taken_errors {
 public:
  taken_errors() : before_(::dup(2)) {
    REQUIRE(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0);
    REQUIRE(::dup2(ends_[1], 2) == 2);
  }
  taken_errors(const taken_errors&) = delete;
  taken_errors& operator=(const taken_errors&) = delete;
  ~taken_errors() {
    ::dup2(before_, 2);
    for (const int each : {before_, ends_[0], ends_[1]}) ::close(each);
  }

  std::string text() const {
    char bytes[4096];
    const ssize_t count = ::read(ends_[0], bytes, sizeof bytes);
    return {bytes, count > 0 ? static_cast<std::size_t>(count) : 0};
  }

 private:
  int before_;
  int ends_[2]{};
};

}  // namespace

TEST_CASE("records of a job: a log of each rank, events of rank 0, and the steps that were taken before") {
  const scratch_directory scratch;
  for (int rank = 0; rank < 2; ++rank) {
    job_records records({.log = scratch.path() + "/logs", .tensorboard = scratch.path() + "/board"},
                        {.program = "p", .name = "a job", .rank = rank, .ranks = 2, .taken = 5, .steps = 9});
    CHECK(records.has_sinks());
    records.drawing("schedule", "F B");
    for (int step = 6; step <= 9; ++step) records.step(step);
    records.end("trained", {{"model", "m"}});
    const std::string log = hocket_test::read_file(scratch.path() + "/logs/rank-" + std::to_string(rank) + ".jsonl");
    INFO(log);
    CHECK(contains(log, R"("event":"start","job":"a job","nodes":2)"));
    CHECK(contains(log, R"("step":5,"steps":9})"));
    CHECK(contains(log, R"("event":"progress","step":9,"steps":9)"));
    CHECK(count_of(log, R"("event":"progress")") == 2);  // the first of a second, and the last one
    CHECK(contains(log, R"("event":"end","status":"trained","nodes":2)"));
    CHECK(contains(log, R"("model":"m")"));
    CHECK(contains(log, R"("hocket_restarts":1,"hocket_steps":4)"));
  }
  const scratch_directory empty;
  job_records none({}, {.program = "p", .name = "a job"});
  CHECK_FALSE(none.has_sinks());
  none.step(1);
  none.end("trained");
}

TEST_CASE("a disk without space is reported once, and does not end the job") {
  const scratch_directory scratch;
  job_records records({.log = scratch.path() + "/logs", .tensorboard = scratch.path() + "/board"},
                      {.program = "my_program", .name = "a job", .rank = 0, .ranks = 1, .steps = 4});
  std::string messages;
  {
    const taken_errors errors;
    const observe_test::file_size_limit limit(8);
    for (int step = 1; step <= 3; ++step) records.step(step, true);
    messages = errors.text();
  }
  CHECK(contains(messages, "my_program: rank 0: "));
  CHECK(contains(messages, "File too large; the training continues, but records are lost"));
  CHECK(count_of(messages, "\n") == 1);
  records.step(4);
  records.end("trained");
  const std::string log = hocket_test::read_file(scratch.path() + "/logs/rank-0.jsonl");
  CHECK(count_of(log, "\n") == 3);
  CHECK(contains(log, R"("event":"progress","step":4)"));
}
