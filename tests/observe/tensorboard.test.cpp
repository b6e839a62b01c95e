// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of events have the values that were written, by a decoder of the test and by TensorBoard's own reader.
#include "observe/events.hpp"
#include "observe/file_size_limit.hpp"
#include "observe/refusal.hpp"
#include "observe/shell.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/draw/schedule_text.hpp>
#include <hocket/observe/tensorboard.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hocket::observe;
using hocket_test::scratch_directory;
using observe_test::events_in;
using observe_test::file_size_limit;
using observe_test::message;

constexpr unsigned step_field = 2, summary_field = 5, session_field = 7;
constexpr unsigned tag_field = 1, simple_field = 2, image_field = 4, histogram_field = 5, tensor_field = 8,
                   metadata_field = 9;

/// Returns the values of the event `i` of a file, which is of step `step`.
std::vector<message> values_of(const std::vector<message>& events, std::size_t i, std::int64_t step) {
  REQUIRE(i < events.size());
  CHECK(events[i].numbers.at(step_field).at(0) == static_cast<std::uint64_t>(step));
  std::vector<message> result;
  const message summary = events[i].at(summary_field);
  for (std::size_t v = 0; v < summary.texts.at(1).size(); ++v) result.push_back(summary.at(1, v));
  return result;
}

/// What a first value of a tag states about it: its plugin and its description.
std::string description_of(const message& value) {
  if (!value.texts.contains(metadata_field)) return "none";
  const message metadata = value.at(metadata_field);
  return metadata.at(1).text(1) + ": " + metadata.text(3);
}

const char* const reader = R"(
import logging, sys
logging.disable(logging.WARNING)
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0, "histograms": 0, "images": 0})
run.Reload()
tags = run.Tags()
for tag in sorted(tags["scalars"]): print(tag, [(e.step, e.value) for e in run.Scalars(tag)])
for tag in sorted(tags["histograms"]):
    for e in run.Histograms(tag):
        h = e.histogram_value
        print(tag, e.step, h.min, h.max, h.num, h.sum, list(h.bucket_limit), list(h.bucket))
for tag in sorted(tags["images"]): print(tag, [(e.step, e.width, e.height, e.encoded_image_string) for e in run.Images(tag)])
for tag in sorted(tags["tensors"]): print(tag, [(e.step, e.tensor_proto.string_val) for e in run.Tensors(tag)])
print(run.SummaryMetadata("loss").summary_description)
)";

}  // namespace

TEST_CASE("a file of events has scalars, histograms, texts and images, and describes each tag once") {
  const scratch_directory scratch;
  tensorboard board(scratch.path() + "/runs/a");
  board.scalar(1, "loss", 2.5);
  board.scalar(std::int64_t{1} << 40, "loss", -0.25);
  board.text(3, "note", "**bold** \xff");
  board.drawing(3, "drawing", "a\nb");
  board.image(4, "image", 3, 2, "not a PNG");
  board.scalar(-1, "t\xff", std::numeric_limits<double>::infinity());
  CHECK(board.path().starts_with(scratch.path() + "/runs/a/events.out.tfevents.1"));

  const auto events = events_in(board.path());
  REQUIRE(events.size() == 7);
  CHECK(events[0].text(3) == "brain.Event:2");
  for (const message& each : events) CHECK(each.real(1) > 1.7e9);
  message value = values_of(events, 1, 1).at(0);
  CHECK((value.text(tag_field) == "loss" && value.real32(simple_field) == 2.5F));
  CHECK(description_of(value) == "scalars: ");
  value = values_of(events, 2, std::int64_t{1} << 40).at(0);
  CHECK((value.text(tag_field) == "loss" && value.real32(simple_field) == -0.25F));
  CHECK(description_of(value) == "none");
  value = values_of(events, 3, 3).at(0);
  CHECK(value.at(tensor_field).text(8) == "**bold** \xef\xbf\xbd");
  CHECK(value.at(tensor_field).numbers.at(1).at(0) == 7);
  CHECK(description_of(value) == "text: ");
  CHECK(values_of(events, 4, 3).at(0).at(tensor_field).text(8) == "    a\n    b");
  value = values_of(events, 5, 4).at(0);
  CHECK((value.at(image_field).numbers.at(1).at(0) == 2 && value.at(image_field).numbers.at(2).at(0) == 3));
  CHECK(value.at(image_field).text(4) == "not a PNG");
  value = values_of(events, 6, -1).at(0);
  CHECK((value.text(tag_field) == "t\xef\xbf\xbd" && std::isinf(value.real32(simple_field))));
}

TEST_CASE("a histogram of numbers counts the finite ones") {
  const scratch_directory scratch;
  tensorboard board(scratch.path());
  std::vector<double> values(300);
  std::iota(values.begin(), values.end(), -150.0);
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  values.push_back(std::numeric_limits<double>::infinity());
  board.histogram(0, "many", values);
  board.histogram(0, "one", std::vector<float>{7, 7});
  const double most = std::numeric_limits<double>::max();
  board.histogram(0, "wide", std::vector<double>{-most, 0, most});
  board.histogram(0, "none", std::vector<float>{});
  board.histogram(0, "none", std::vector<float>{std::numeric_limits<float>::quiet_NaN()});

  const auto events = events_in(board.path());
  REQUIRE(events.size() == 4);
  const auto all = [](const message& value) {
    const std::vector<double> counts = value.at(histogram_field).reals(7);
    return std::accumulate(counts.begin(), counts.end(), 0.0);
  };
  message value = values_of(events, 1, 0).at(0);
  message its = value.at(histogram_field);
  CHECK((its.real(1) == -150 && its.real(2) == 149 && its.real(3) == 300 && its.real(4) == -150));
  CHECK(its.real(5) == Approx(300 * (300 * 300 - 1) / 12.0 + 300 * 0.25));
  const std::vector<double> limits = its.reals(6), counts = its.reals(7);
  REQUIRE((limits.size() == 30 && counts.size() == 30 && limits.back() == 149));
  for (const double each : counts) CHECK((each >= 9 && each <= 11));
  for (std::size_t i = 1; i < limits.size(); ++i) CHECK(limits[i] > limits[i - 1]);
  CHECK(all(value) == 300);
  value = values_of(events, 2, 0).at(0);
  CHECK((value.at(histogram_field).real(1) == 7 && value.at(histogram_field).real(2) == 7 && all(value) == 2));
  value = values_of(events, 3, 0).at(0);
  CHECK(all(value) == 3);
  CHECK(value.at(histogram_field).reals(7).front() == 1);
  CHECK(value.at(histogram_field).reals(7).back() == 1);
}

TEST_CASE("all metrics of a registry are one event; of histograms, what is new") {
  const scratch_directory scratch;
  registry metrics;
  metrics.counter("bytes", "sent bytes", {{"call", "all_reduce"}, {"peer", "1"}}).add(4096);
  metrics.gauge("loss", "nats per byte").set(2.5);
  histogram& seconds = metrics.histogram("seconds", "time", {1, 2, 4});
  tensorboard board(scratch.path(), metrics);
  seconds.record(1.5);
  seconds.record(9);
  board.write(1);
  board.write(2);
  seconds.record(0.5);
  board.write(3);

  const auto events = events_in(board.path());
  REQUIRE(events.size() == 4);
  const auto first = values_of(events, 1, 1);
  REQUIRE(first.size() == 3);
  CHECK((first[0].text(tag_field) == "bytes/call=all_reduce,peer=1" && first[0].real32(simple_field) == 4096));
  CHECK(description_of(first[0]) == "scalars: sent bytes");
  CHECK((first[1].text(tag_field) == "loss" && description_of(first[1]) == "scalars: nats per byte"));
  CHECK((first[2].text(tag_field) == "seconds" && description_of(first[2]) == "histograms: time"));
  message its = first[2].at(histogram_field);
  CHECK((its.real(1) == 1 && its.real(2) == 6 && its.real(3) == 2 && its.real(4) == 10.5));
  CHECK(its.reals(6) == std::vector<double>{2, 4, 6});
  CHECK(its.reals(7) == std::vector<double>{1, 0, 1});
  CHECK(values_of(events, 2, 2).size() == 2);
  const auto third = values_of(events, 3, 3);
  REQUIRE(third.size() == 3);
  its = third[2].at(histogram_field);
  CHECK((its.real(1) == 0 && its.real(2) == 1 && its.real(3) == 1 && its.real(4) == 0.5));
  CHECK(description_of(third[2]) == "none");
}

TEST_CASE("a restart is a session's start, and files of one second have names in order") {
  const scratch_directory scratch;
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i) paths.push_back(tensorboard(scratch.path()).path());
  CHECK(std::is_sorted(paths.begin(), paths.end()));
  CHECK(scratch.names().size() == 12);
  tensorboard board(scratch.path());
  board.restart(70);
  const auto events = events_in(board.path());
  REQUIRE(events.size() == 2);
  CHECK(events[1].numbers.at(step_field).at(0) == 70);
  CHECK(events[1].at(session_field).numbers.at(1).at(0) == 1);
}

TEST_CASE("a file has a name after those in its folder, also if the clock is behind") {
  const std::string ahead = "events.out.tfevents.4000000000.zzz.000";
  for (const std::string& name : {ahead, std::string("events.out.tfevents.4000000000.0.1.2"),
                                  std::string("events.out.tfevents.9999999998.zzz.999")}) {
    const scratch_directory scratch;
    scratch.write(name, "");
    std::vector<std::string> paths{scratch.path() + '/' + name};
    for (int i = 0; i < 3; ++i) paths.push_back(tensorboard(scratch.path()).path());
    INFO(paths[1]);
    for (std::size_t i = 1; i < paths.size(); ++i) CHECK(paths[i] > paths[i - 1]);
  }
  // Other names have no say.
  for (const char* const name : {"events.out.tfevents.x", "events.out.tfevents.99999999999999999999.a", "z"}) {
    const scratch_directory scratch;
    scratch.write(name, "");
    CHECK(tensorboard(scratch.path()).path() < scratch.path() + "/events.out.tfevents.4");
  }
}

TEST_CASE("after a full disk, the next event describes its tags and has the values of the lost one") {
  const scratch_directory scratch;
  registry metrics;
  metrics.gauge("loss", "nats").set(1);
  histogram& seconds = metrics.histogram("seconds", "time", {1, 2, 4});
  tensorboard board(scratch.path(), metrics);
  const auto size = std::filesystem::file_size(board.path());
  seconds.record(1.5);
  {
    const file_size_limit limit(size + 20);
    observe_test::refusal_of([&] { board.write(1); }, hocket::errc::system);
    observe_test::refusal_of([&] { board.scalar(1, "own", 1); }, hocket::errc::system);
  }
  seconds.record(3);
  board.write(2);
  board.scalar(2, "own", 1);
  const auto events = events_in(board.path());
  REQUIRE(events.size() == 3);
  const auto values = values_of(events, 1, 2);
  REQUIRE(values.size() == 2);
  CHECK(description_of(values[0]) == "scalars: nats");
  CHECK(description_of(values[1]) == "histograms: time");
  CHECK(values[1].at(histogram_field).reals(7) == std::vector<double>{1, 1});
  CHECK(description_of(values_of(events, 2, 2).at(0)) == "scalars: ");
}

TEST_CASE("threads that write metrics at the same time count each value once") {
  const scratch_directory scratch;
  registry metrics;
  histogram& seconds = metrics.histogram("seconds", "time", {1});
  tensorboard board(scratch.path(), metrics);
  constexpr int threads = 4, writes = 300;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&] {
      for (int i = 0; i < writes; ++i) {
        seconds.record(0.5);
        board.write(i);
      }
    });
  }
  for (std::thread& each : all) each.join();
  double sum = 0;
  for (const message& event : events_in(board.path())) {
    if (!event.texts.contains(summary_field) || !event.at(summary_field).texts.contains(1)) continue;
    for (const double count : event.at(summary_field).at(1).at(histogram_field).reals(7)) sum += count;
  }
  CHECK(sum == threads * writes);
}

TEST_CASE("a folder with the last name of all is an error, not an endless search") {
  const scratch_directory scratch;
  scratch.write("events.out.tfevents.9999999999.zzz", "");
  CHECK(observe_test::refusal_of([&] { tensorboard(scratch.path()); }, hocket::errc::system).ends_with("File exists"));
}

TEST_CASE("a folder in which no file of events can be created is an error that states what to do") {
  const scratch_directory scratch;
  scratch.write("file", "");
  CHECK(observe_test::refusal_of([&] { tensorboard board(scratch.path() + "/file"); }, hocket::errc::system) ==
        "cannot create a file of events in '" + scratch.path() +
            "/file': name a folder in which this process may create files: Not a directory");
}

TEST_CASE("TensorBoard's reader accepts the files, and shows each step once after a restart") {
  const scratch_directory scratch;
  const std::string run = scratch.path() + "/run";
  registry metrics;
  gauge& loss = metrics.gauge("loss", "nats per byte");
  {
    tensorboard board(run, metrics);
    board.drawing(0, "schedule",
                  hocket::plan::pipeline::draw_text(hocket::plan::pipeline::one_forward_one_backward(2, 2)));
    for (int step = 0; step < 5; ++step) {
      loss.set(step);
      board.write(step);
    }
  }
  {
    histogram& seconds = metrics.histogram("seconds", "time", {1, 2, 4});
    tensorboard board(run, metrics);
    board.restart(3);
    for (int step = 3; step < 6; ++step) {
      loss.set(10 * step);
      seconds.record(step);
      board.write(step);
    }
    board.restart(5);  // the same process goes back
    loss.set(7.5);
    seconds.record(1.5);
    seconds.record(3);
    board.write(5);
    board.image(5, "picture", 3, 2, "bytes");
  }
  std::string python;
  for (const char* const each : {"python3", "python"}) {
    if (python.empty() && observe_test::succeeds(std::string(each) + " -c 'import tensorboard'")) python = each;
  }
  if (python.empty()) {
    WARN("left out: there is no python3 with tensorboard");
    return;
  }
  scratch.write("reader.py", reader);
  const std::string drawn = hocket::plan::pipeline::draw_text(hocket::plan::pipeline::one_forward_one_backward(2, 2));
  std::string shown = "    ";
  for (const char each : drawn) shown += each == '\n' ? "\\n    " : std::string(1, each);
  CHECK(observe_test::output_of(python + ' ' + scratch.path() + "/reader.py " + run) ==
        "loss [(0, 0.0), (1, 1.0), (2, 2.0), (3, 30.0), (4, 40.0), (5, 7.5)]\n"
        "seconds 3 2.0 4.0 1.0 3.0 [4.0] [1.0]\n"
        "seconds 4 2.0 4.0 1.0 4.0 [4.0] [1.0]\n"
        "seconds 5 1.0 4.0 2.0 4.5 [2.0, 4.0] [1.0, 1.0]\n"
        "picture [(5, 3, 2, b'bytes')]\n"
        "schedule [(0, [b'" +
            shown +
            "'])]\n"
            "nats per byte\n");
}
