// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// hocket-plan inspects algorithms and schedules without running them. It lists, prints, draws, proves and prices them,
/// and compares pipeline schedules in one table. See `hocket-plan --help`.
#include "collectives.hpp"
#include "limits.hpp"
#include "pipelines.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
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

/// Adds the options that all pipeline commands share.
void add_sizes(CLI::App& command, plans::pipeline_request& wanted) {
  const CLI::Validator positive = plans::whole_number(1, plans::most_pipeline_number);
  command.add_option("-P,--ranks", wanted.ranks, "ranks")->check(positive)->capture_default_str();
  command.add_option("-M,--microbatches", wanted.microbatches, "microbatches")->check(positive)->capture_default_str();
  command.add_option("-v,--stages-per-rank", wanted.stages_per_rank, "for schedules with a variable number")
      ->check(positive)
      ->capture_default_str();
  command
      .add_option("--group", wanted.group, "microbatches that pass a stage before the rank's next stage; 0: default")
      ->check(plans::whole_number(0, plans::most_pipeline_number));
  command
      .add_option("--times", wanted.times, "forward, input gradient and weight gradient of a rank's share of the model")
      ->delimiter(',')
      ->default_str("1,1,1");
  command
      .add_option("--hop", wanted.hops,
                  "time of a message between ranks; or one time per rank, separated by commas: from each rank to the "
                  "next, and from the last to the first")
      ->delimiter(',')
      ->default_str("0");
  command.add_option("--unit", wanted.unit, "unit of these times in the output, such as ms");
  command.add_flag(
      "--recompute", wanted.recompute,
      "recompute activations before their gradients, which takes as long as the forward pass. Greedy schedules "
      "recompute only where the memory limit makes that shorter");
  command.add_option(
      "--most-activations", wanted.most_activations,
      "memory limit per rank, in microbatches of its whole share of the model: greedy schedules observe it, "
      "`compare` marks other schedules that exceed it; 0: no limit");
}

/// Returns the given options that only some schedules take.
std::vector<std::string> said_sizes(const CLI::App& command) {
  std::vector<std::string> names_given;
  for (const char* option : {"-P", "-M", "-v", "--group", "--most-activations"}) {
    if (command.count(option) > 0) names_given.emplace_back(option);
  }
  return names_given;
}

}  // namespace

int main(int count, char** arguments) {
  plans::pipeline_request schedule;
  plans::collective_request algorithm;
  CLI::App app("Inspects the algorithms of collectives and pipeline schedules without running them.");
  app.require_subcommand(1);
  CLI::App* const list_command = app.add_subcommand("list", "lists the names of all algorithms and schedules");

  CLI::App* const pipeline_command =
      app.add_subcommand("pipeline", "proves and prices a pipeline schedule, and shows it");
  pipeline_command
      ->add_option("NAME", schedule.name,
                   "a name from `hocket-plan list`, or a file with a table of actions; - is stdin")
      ->required();
  add_sizes(*pipeline_command, schedule);
  pipeline_command->add_flag("--print", schedule.print, "print its text form, one row per rank");
  pipeline_command->add_flag("--draw", schedule.draw, "draw it as text");
  pipeline_command->add_option("--svg", schedule.svg, "write an SVG drawing to this file");
  pipeline_command->add_flag(
      "--lower{messages}", schedule.lower,
      "show the schedule after the passes that add messages, as in the executor; --lower=PASS,... "
      "runs these before: merge, recompute, shard, reduce, update; and defer at the end");

  CLI::App* const compare_command =
      app.add_subcommand("compare", "compares all pipeline schedules in one table, the shortest first");
  add_sizes(*compare_command, schedule);

  CLI::App* const collective_command = app.add_subcommand("collective", "proves and prices an algorithm, and shows it");
  collective_command->add_option("NAME", algorithm.name, "a name from `hocket-plan list`")->required();
  collective_command->add_option("-P,--ranks", algorithm.ranks, "ranks")
      ->check(plans::whole_number(1, plans::most_ranks))
      ->capture_default_str();
  collective_command->add_option("--root", algorithm.root, "root of broadcasts")
      ->check(plans::whole_number(0, plans::most_ranks - 1))
      ->capture_default_str();
  collective_command->add_option("--bytes", algorithm.bytes, "size of the vector, such as 1000 or 1MiB")
      ->transform(plans::size_in_bytes(plans::most_bytes, "1PiB"))
      ->default_str("1MiB");
  collective_command->add_option("--latency", algorithm.machine.latency, "latency of a message, in seconds")
      ->capture_default_str();
  collective_command->add_option("--seconds-per-byte", algorithm.machine.seconds_per_byte, "time per byte of a message")
      ->capture_default_str();
  collective_command
      ->add_option("--most-actions", algorithm.most_actions,
                   "simulate all ranks for an exact price, if they do not correspond to each other, up to this many "
                   "actions; a million takes up to a second")
      ->check(plans::whole_number(1, plans::most_simulated_actions))
      ->capture_default_str();
  collective_command->add_flag("--no-proof", algorithm.price_alone,
                               "only price it, which is fast for any number of ranks");
  collective_command
      ->add_option("--most-memory", algorithm.most_memory,
                   "do not attempt a proof that needs more memory than this: that is the case for most algorithms from "
                   "some thousands of ranks on")
      ->transform(plans::size_in_bytes(plans::most_bytes, "1PiB"))
      ->default_str("1GiB");
  collective_command->add_flag("--print", algorithm.print, "print the actions of each rank in words");
  collective_command->add_flag("--draw", algorithm.draw, "draw it as text");
  collective_command->add_option("--svg", algorithm.svg, "write an SVG drawing to this file");
  app.footer(
      "Exit status: 0 if the proofs succeed or none is requested, 1 if one fails or is not attempted, 2 if the "
      "arguments are wrong.\n\n"
      "  hocket-plan compare -P 8 -M 32 --times 1,1.3,0.7 --hop 0.1\n"
      "  hocket-plan pipeline zero_bubble_v -P 4 -M 8 --draw --svg zero_bubble_v.svg\n"
      "  hocket-plan collective ring_all_reduce -P 4 --draw\n"
      "  hocket-plan collective ring_all_reduce -P 1000000 --no-proof");
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
  } catch (const std::bad_alloc&) {
    std::cout.flush();
    std::fputs("hocket-plan: there is not enough memory: choose fewer --ranks, or less to show\n", stderr);
    return bad_usage;
  } catch (const std::exception& problem) {
    std::cout.flush();
    std::fprintf(stderr, "hocket-plan: %s\n", problem.what());
    return bad_usage;
  }
}
