// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// hocket-plan: looks at algorithms and schedules without running them. Lists, prints, draws, proves and prices them, and
/// compares pipeline schedules in one table. `hocket-plan --help` tells more.
#include "collectives.hpp"
#include "pipelines.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

constexpr int not_proven = 1;
constexpr int bad_usage = 2;

void list() {
  std::cout << "algorithms of collectives (hocket-plan collective NAME):\n";
  for (const auto& [name, plan] : plans::collectives()) std::cout << "  " << name << '\n';
  std::cout << "pipeline schedules (hocket-plan pipeline NAME):\n";
  for (const plans::generator& each : plans::generators()) std::cout << "  " << each.name << '\n';
}

/// Options that all commands about pipelines share.
void add_sizes(CLI::App& command, plans::pipeline_request& wanted) {
  command.add_option("-P,--ranks", wanted.ranks, "ranks")->capture_default_str();
  command.add_option("-M,--microbatches", wanted.microbatches, "microbatches")->capture_default_str();
  command.add_option("-v,--stages-per-rank", wanted.stages_per_rank, "of schedules that leave it open")
      ->capture_default_str();
  command.add_option("--group", wanted.group, "microbatches that go through a stage before the rank's next; 0: chosen");
  command
      .add_option("--times", wanted.times, "forward, input gradient and weight gradient of a rank's share of the model")
      ->delimiter(',')
      ->default_str("1,1,1");
  command
      .add_option("--hop", wanted.hops,
                  "time of a message between ranks; or, between commas, as many as there are ranks: from each to the "
                  "next, from the last to the first")
      ->delimiter(',')
      ->default_str("0");
  command.add_option("--unit", wanted.unit, "of these times, for the output, such as ms");
  command.add_flag(
      "--recompute", wanted.recompute,
      "form activations again before their gradients; that takes as long as the forward pass. Greedy schedules "
      "do so only where that is shorter, for lack of memory");
  command.add_option(
      "--most-activations", wanted.most_activations,
      "per rank, in microbatches of its whole share of the model: the limit for greedy schedules, and what "
      "`compare` marks others by; 0: none");
}

/// Those of the options above that only some schedules take, as far as they were said.
std::vector<std::string> said_sizes(const CLI::App& command) {
  std::vector<std::string> said;
  for (const char* option : {"-P", "-M", "-v", "--group", "--most-activations"}) {
    if (command.count(option) > 0) said.emplace_back(option);
  }
  return said;
}

}  // namespace

int main(int count, char** arguments) {
  plans::pipeline_request schedule;
  plans::collective_request algorithm;
  CLI::App app("Looks at the algorithms of collectives and at pipeline schedules without running them.");
  app.require_subcommand(1);
  CLI::App* const list_command = app.add_subcommand("list", "names all");

  CLI::App* const pipeline_command =
      app.add_subcommand("pipeline", "proves and prices a pipeline schedule, and shows it");
  pipeline_command
      ->add_option("NAME", schedule.name, "of `hocket-plan list`, or of a file with a table of actions; - reads one")
      ->required();
  add_sizes(*pipeline_command, schedule);
  pipeline_command->add_flag("--print", schedule.print, "its text form, a row per rank");
  pipeline_command->add_flag("--draw", schedule.draw, "a drawing as text");
  pipeline_command->add_option("--svg", schedule.svg, "a drawing for a browser, into this file");
  pipeline_command->add_flag("--lower{messages}", schedule.lower,
                             "what the passes that put in messages make of it, as the executor does; --lower=PASS,... "
                             "makes these first: merge, recompute, shard, reduce, update, and at the end defer");

  CLI::App* const compare_command =
      app.add_subcommand("compare", "all pipeline schedules in one table, the shortest first");
  add_sizes(*compare_command, schedule);

  CLI::App* const collective_command = app.add_subcommand("collective", "proves and prices an algorithm, and shows it");
  collective_command->add_option("NAME", algorithm.name, "of `hocket-plan list`")->required();
  collective_command->add_option("-P,--ranks", algorithm.ranks, "ranks")->capture_default_str();
  collective_command->add_option("--root", algorithm.root, "of broadcasts")->capture_default_str();
  collective_command->add_option("--bytes", algorithm.bytes, "of the vector, as 1000 or 1MiB")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("1MiB");
  collective_command->add_option("--latency", algorithm.machine.latency, "of a message, in seconds")
      ->capture_default_str();
  collective_command->add_option("--seconds-per-byte", algorithm.machine.seconds_per_byte, "of a message")
      ->capture_default_str();
  collective_command->add_flag("--print", algorithm.print, "the actions of each rank in words");
  collective_command->add_flag("--draw", algorithm.draw, "a drawing as text");
  collective_command->add_option("--svg", algorithm.svg, "a drawing for a browser, into this file");
  app.footer(
      "Exit status: 0 if what is shown holds its proof, 1 if not, 2 if the arguments are wrong.\n\n"
      "  hocket-plan compare -P 8 -M 32 --times 1,1.3,0.7 --hop 0.1\n"
      "  hocket-plan pipeline zero_bubble_v -P 4 -M 8 --draw --svg zero_bubble_v.svg\n"
      "  hocket-plan collective ring_all_reduce -P 4 --draw");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : bad_usage;
  }
  try {
    bool proven = true;
    schedule.given = said_sizes(*pipeline_command);
    if (list_command->parsed()) list();
    if (pipeline_command->parsed()) proven = plans::show_pipeline(schedule);
    if (compare_command->parsed()) plans::compare_pipelines(schedule);
    if (collective_command->parsed()) proven = plans::show_collective(algorithm);
    return proven ? 0 : not_proven;
  } catch (const std::exception& problem) {
    std::cout.flush();
    std::fprintf(stderr, "hocket-plan: %s\n", problem.what());
    return bad_usage;
  }
}
