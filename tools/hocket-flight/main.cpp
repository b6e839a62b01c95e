// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: nlohmann_json
/// @file
/// hocket-flight explains why a job failed. It reads the flight records that the ranks wrote, and reports which rank is
/// missing, which calls differ, which rank was slow, or which link broke. See `hocket-flight --help`.
#include "report.hpp"

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr int nothing_found = 1;
constexpr int bad_usage = 2;

struct settings {
  std::vector<std::string> places;
  bool json = false;
  std::size_t calls = 3;
};

int run(const settings& wanted) {
  const flight::archive all = flight::read(wanted.places);
  const flight::report report(all, wanted.calls);
  std::fputs((wanted.json ? report.json() : report.text()).c_str(), stdout);
  return all.records.empty() ? nothing_found : 0;
}

}  // namespace

int main(int count, char** arguments) {
  settings wanted;
  CLI::App app(
      "Explains why a job failed, from the flight records that its ranks wrote.\n\n"
      "When a call fails, each rank writes a record into the directory that HOCKET_FLIGHT_RECORDER or\n"
      "communicator::set_flight_recorder names: DIR/hocket-flight-communicator0-rank3-....jsonl.\n");
  app.add_option("PLACE", wanted.places, "directories with records, or single files; pass those of all hosts")
      ->required();
  app.add_flag("--json", wanted.json, "print one JSON object");
  app.add_option("--calls", wanted.calls, "how many of the last calls to show for each rank (default: 3)");
  app.footer("Exit status: 0 if there were records, 1 if none could be read, 2 if the arguments are wrong.");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : bad_usage;
  }
  try {
    return run(wanted);
  } catch (const flight::usage_error& problem) {
    std::fprintf(stderr, "hocket-flight: %s\n", problem.what());
    return bad_usage;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "hocket-flight: %s\n", problem.what());
    return nothing_found;
  }
}
