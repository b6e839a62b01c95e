// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
//
// hocket-flight reads the records of a failed job, even if they are truncated, missing, from several runs, or invalid.
// It distinguishes a broken link from a rank that has exited.
#include "support/scratch.hpp"
#include "tools/hocket_flight/stories.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace hocket_test;
using nlohmann::json;

namespace {

/// A record as ranks write it, with only the failed call.
struct made_up {
  int rank = 0;
  int ranks = 2;
  int pid = 100;
  long long time = 1'700'000'000'000'000'000;  ///< of the failure
  int code = 1;
  int culprit = -1;
  int first_on = -1;
  std::string host = "one";
  int communicator = 0;
  int sequence = 5;
  int step = 0;
  int awaits = -1;

  std::string text() const {
    std::vector<int> members;
    for (int i = 0; i < ranks; ++i) members.push_back(i);
    const json head{{"hocket_flight_record", 2},
                    {"communicator", communicator},
                    {"rank", rank},
                    {"ranks", ranks},
                    {"world_rank", rank},
                    {"world_ranks", ranks},
                    {"transport", "ucx"},
                    {"host", host},
                    {"pid", pid},
                    {"made", time - 10'000'000'000},
                    {"written", time + 1000},
                    {"last_sequence", sequence},
                    {"members", members}};
    const json failed{{"failure", "failed"},
                      {"code", code},
                      {"first_on", first_on < 0 ? rank : first_on},
                      {"culprit", culprit},
                      {"sequence", sequence},
                      {"operation", "all_reduce"},
                      {"file", "a \"b\".cpp"},
                      {"line", 7},
                      {"time", time},
                      {"message", "all of it"}};
    json call{{"call", sequence}, {"operation", "all_reduce"},
              {"elements", 10},   {"types", "float, std::plus<void>"},
              {"plan", "ring"},   {"root", 0},
              {"signature", 1},   {"file", "a \"b\".cpp"},
              {"line", 7},        {"begin", time - 1'500'000'000},
              {"over", 0},        {"step", step}};
    if (awaits >= 0) call["awaits"] = awaits;
    return line_of_record(head.dump()) + line_of_record(failed.dump()) + line_of_record(call.dump()) +
           line_of_record("{\"end_of_record\":1}");
  }
  std::string name() const { return "hocket-flight-communicator0-rank" + std::to_string(rank) + ".jsonl"; }
};

void leave(const scratch_directory& where, const made_up& what) { where.write(what.name(), what.text()); }

std::string complaint(const std::vector<std::string>& places) {
  try {
    flight::read(places);
  } catch (const flight::usage_error& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("hocket-flight reports a broken link between two live ranks that lost contact") {
  const scratch_directory here;
  leave(here, {.rank = 0, .ranks = 3, .code = 3, .culprit = 2, .host = "one", .awaits = 2});
  leave(here, {.rank = 1, .ranks = 3, .code = 3, .culprit = 2, .host = "one", .awaits = 0});
  leave(here, {.rank = 2, .ranks = 3, .pid = 7, .code = 3, .culprit = 0, .host = "two", .awaits = 1});
  CHECK(lacks(told_of(here.path()), {"ranks over ucx: link", "Rank 0 (one) received nothing from rank 2 (two).",
                                     "Rank 2 (two) received nothing from rank 0 (one).", "between these two hosts"}) ==
        "");
}

TEST_CASE("hocket-flight reports a broken link at the rank furthest behind if ranks wait for each other in one call") {
  const scratch_directory here;
  leave(here, {.rank = 0, .ranks = 3, .culprit = 2, .step = 4, .awaits = 2});
  leave(here, {.rank = 1, .ranks = 3, .culprit = 2, .first_on = 0, .step = 1, .awaits = 0});
  leave(here, {.rank = 2, .ranks = 3, .culprit = 2, .first_on = 0, .step = 3, .awaits = 1});
  CHECK(lacks(told_of(here.path()), {"The link between ranks 0 and 1 is broken",
                                     "Rank 1 is the furthest behind, at step 1", "rank 0 is at step 4"}) == "");
}

TEST_CASE("hocket-flight ignores records of an earlier run") {
  const scratch_directory here;
  const long long earlier = 1'700'000'000'000'000'000 - 3'600'000'000'000;
  leave(here, {.rank = 0, .pid = 9, .code = 3, .culprit = 1, .awaits = 1});
  leave(here, {.rank = 1, .pid = 8, .time = earlier, .code = 4, .culprit = 0});
  const std::string text = told_of(here.path());
  CHECK(lacks(text, {"rank1.jsonl: from an earlier run, ignored", "Rank 1 is missing", "1: no record"}) == "");
}

TEST_CASE("hocket-flight reports communicators in the order of their failures") {
  const scratch_directory here;
  const long long second = 1'000'000'000;
  const made_up first{.rank = 0, .code = 3, .culprit = 1, .awaits = 1};
  made_up later = first;
  later.communicator = 7;
  later.time += second;
  here.write("hocket-flight-b.jsonl", first.text());
  here.write("hocket-flight-a.jsonl", later.text());
  const std::string text = told_of(here.path());
  CHECK(text.find("Communicator 0") < text.find("Communicator 7"));
  CHECK(lacks(text, {"Communicator 0", "Communicator 7"}) == "");
}

TEST_CASE("hocket-flight names the file and line of incomplete or invalid records, and uses the rest") {
  const scratch_directory here;
  leave(here, {.rank = 0, .code = 3, .culprit = 1, .awaits = 1});
  const std::string whole = made_up{.rank = 1, .code = 3, .culprit = 0, .first_on = 0}.text();
  const std::string name = made_up{.rank = 1}.name();
  const auto told_with = [&](const std::string& text) {
    here.write(name, text);
    return told_of(here.path());
  };
  const std::size_t second = whole.find('\n') + 1;
  CHECK(lacks(told_with(whole.substr(0, whole.find("{\"end_of") - 2)),
              {name + ":3: the file ends here and is incomplete"}) == "");
  CHECK(lacks(told_with(whole.substr(0, second + 20)), {name + ":2: this line can't be read", "Communicator 0"}) == "");
  CHECK(lacks(told_with(whole.substr(0, second) + "rubbish\n" + whole.substr(second)),
              {name + ":2: this line", "link"}) == "");
  CHECK(lacks(told_with(""), {name + ": the file is empty", "Rank 1 is missing"}) == "");
  CHECK(lacks(told_with("[1]\n"), {name + ":1: not an object"}) == "");
  CHECK(lacks(told_with("{}\n"), {name + ":1: this is not a flight record of hocket"}) == "");
  CHECK(lacks(told_with("{\"hocket_flight_record\":3}\n"), {name + ":1: a flight record of version 3"}) == "");
  CHECK(lacks(told_with(line_of_record("{\"hocket_flight_record\":2,\"ranks\":\"x\"}")),
              {name + ":1: \"ranks\" is not an integer"}) == "");
  CHECK(lacks(told_with(line_of_record("{\"hocket_flight_record\":2,\"ranks\":1e99}")),
              {name + ":1: \"ranks\" is not an integer"}) == "");
  CHECK(lacks(told_with(line_of_record("{\"hocket_flight_record\":2,\"rank\":99999999999}")),
              {name + ":1: \"rank\" is out of range"}) == "");
  CHECK(lacks(told_with(line_of_record("{\"hocket_flight_record\":2,\"ranks\":3,\"rank\":4}")),
              {name + ":1: rank, ranks and members"}) == "");
}

TEST_CASE("hocket-flight reports every flipped bit and every missing end of a record, and uses no damaged line") {
  const std::string whole = made_up{.rank = 1, .code = 1, .culprit = 0, .awaits = 0}.text();
  const auto read = [](const std::string& text) {
    flight::archive found;
    std::istringstream file(text);
    flight::detail::reader("file", found).read(file);
    return found;
  };
  REQUIRE(read(whole).problems.empty());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ 1U << bit);
      const flight::archive found = read(damaged);
      INFO("bit " << bit << " of byte " << at);
      REQUIRE(!found.problems.empty());
      REQUIRE(found.problems.front().rfind("file:", 0) == 0);
      for (const flight::record& each : found.records) {
        for (const flight::call& call : each.calls) REQUIRE((call.sequence == 5 && call.elements == 10));
        if (each.failed) REQUIRE((each.failed->code == 1 && each.failed->culprit == 0));
      }
    }
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("the first " << length << " bytes");
    REQUIRE(!read(whole.substr(0, length)).problems.empty());
  }
  const std::string changed = std::string(whole).replace(whole.find("ring"), 4, "tree");
  CHECK(read(changed).problems.front().find("file:3: this line is damaged: its checksum is missing or wrong (bytes ") ==
        0);
}

TEST_CASE("hocket-flight explains what it expected if there are no records to read") {
  const scratch_directory here;
  here.write("readme.txt", "nothing");
  CHECK(lacks(complaint({here.path()}), {"no flight records here", "HOCKET_FLIGHT_RECORDER"}) == "");
  CHECK(lacks(complaint({here.path() + "/nowhere"}), {"there is no file or directory", "nowhere"}) == "");
  CHECK(lacks(complaint({"/dev/null"}), {"neither a file nor a directory"}) == "");
}

TEST_CASE("hocket-flight replaces escape characters of a record") {
  const scratch_directory here;
  leave(here, {.rank = 0, .ranks = 2, .code = 3, .culprit = 1, .host = "one\x1b[2J", .awaits = 1});
  const std::string told = told_of(here.path());
  CHECK(told.find('\x1b') == std::string::npos);
  CHECK(lacks(told, {"one?[2J"}) == "");
}

TEST_CASE("hocket-flight reports on records with random errors") {
  const scratch_directory here;
  std::mt19937 random(7);
  const std::string whole = made_up{.rank = 1, .code = 1, .culprit = 0, .awaits = 0}.text();
  leave(here, {.rank = 0, .code = 1, .culprit = 1, .awaits = 1});
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    for (unsigned i = 0; i < 1 + random() % 8; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random() % 256); break;
        case 1: text.erase(at, random() % 20); break;
        case 2: text.insert(at, text.substr(random() % text.size(), 30)); break;
        default: text[at] = static_cast<char>('0' + random() % 10); break;
      }
      if (text.empty()) text = "x";
    }
    here.write(made_up{.rank = 1}.name(), text);
    const flight::archive all = flight::read({here.path()});
    const flight::report report(all, 3);
    CHECK_FALSE(report.text().empty());
    CHECK(json::accept(report.json()));
  }
}
