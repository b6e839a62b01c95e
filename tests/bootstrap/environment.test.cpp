// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/bootstrap/environment.hpp>

#include <map>
#include <string>

#include "support/catch.hpp"

using hocket::bootstrap::read_environment;
using hocket::bootstrap::world_description;
using variables = std::map<std::string, std::string>;

namespace {

world_description read(const variables& set) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  });
}

/// The message of the error; empty if there was none.
std::string complaint(const variables& set) {
  try {
    read(set);
  } catch (const hocket::error& cause) {
    return cause.code() == hocket::errc::bad_environment ? cause.reason() : "another error";
  }
  return {};
}

variables plus(variables base, const variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const variables hocket_four{{"HOCKET_RANK", "2"}, {"HOCKET_RANKS", "4"}, {"HOCKET_STORE", "tcp://node7:4000"}};
const variables torchrun_eight{{"RANK", "5"},
                               {"WORLD_SIZE", "8"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "10.0.0.1"},
                               {"MASTER_PORT", "29500"}};

const variables open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_NAMESPACE", "1286275073"}};
const variables mpich{{"PMI_RANK", "5"}, {"PMI_SIZE", "6"}, {"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}};
const variables slurm_batch_script{
    {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "77"}};
const variables srun{{"SLURM_PROCID", "7"},
                     {"SLURM_LOCALID", "1"},
                     {"SLURM_NTASKS", "8"},
                     {"SLURM_STEP_NUM_TASKS", "8"},
                     {"SLURM_JOB_ID", "77"}};
const variables meeting_place{{"HOCKET_STORE", "tcp://node7:4000"}};

}  // namespace

TEST_CASE("without any variable the program is a world of one rank") {
  const world_description world = read({});
  CHECK(world.rank == 0);
  CHECK(world.ranks == 1);
  CHECK(world.local_rank == 0);
  CHECK(world.local_ranks == 1);
  CHECK(world.address.empty());
  CHECK(world.directory.empty());
  CHECK(world.timeout == hocket::default_timeout);
}

TEST_CASE("HOCKET_ variables describe the world") {
  const world_description world = read(plus(hocket_four, {{"HOCKET_LOCAL_RANK", "0"},
                                                          {"HOCKET_LOCAL_RANKS", "2"},
                                                          {"HOCKET_TOKEN", "abc"},
                                                          {"HOCKET_TIMEOUT", "2.5"},
                                                          {"HOCKET_FLIGHT_RECORDER", "/var/flight"}}));
  CHECK(world.rank == 2);
  CHECK(world.ranks == 4);
  CHECK(world.local_rank == 0);
  CHECK(world.local_ranks == 2);
  CHECK(world.address == "node7");
  CHECK(world.port == 4000);
  CHECK(world.token == "abc");
  CHECK(world.timeout == std::chrono::milliseconds(2500));
  CHECK(world.flight_recorder == "/var/flight");
  CHECK(read(hocket_four).flight_recorder.empty());
  CHECK(read(hocket_four).local_rank == -1);
  CHECK(read(hocket_four).local_ranks == 0);
}

TEST_CASE("only rank 0 takes over a listening socket") {
  CHECK(read(plus(hocket_four, {{"HOCKET_STORE_FD", "9"}})).listener == -1);
  CHECK(read(plus(hocket_four, {{"HOCKET_STORE_FD", "9"}, {"HOCKET_RANK", "0"}})).listener == 9);
}

TEST_CASE("HOCKET_STORE names a host, an IPv6 address or a directory") {
  const auto with_store = [](const char* store) { return read(plus(hocket_four, {{"HOCKET_STORE", store}})); };
  CHECK(with_store("tcp://[fe80::1]:80").address == "fe80::1");
  CHECK(with_store("tcp://[fe80::1]:80").port == 80);
  CHECK(with_store("dir:///shared/job").directory == "/shared/job");
  CHECK(with_store("dir:///shared/job").address.empty());
}

TEST_CASE("torchrun's variables are read if the HOCKET_ variables are not set") {
  const world_description world = read(torchrun_eight);
  CHECK(world.rank == 5);
  CHECK(world.ranks == 8);
  CHECK(world.local_rank == 1);
  CHECK(world.local_ranks == 4);
  CHECK(world.address == "10.0.0.1");
  CHECK(world.port == 29500);
  CHECK(world.source == "torchrun variables");

  CHECK(read(plus(torchrun_eight, hocket_four)).rank == 2);
  CHECK(read(plus(torchrun_eight, {{"TORCHELASTIC_RUN_ID", "job9"}})).token == "job9");
  CHECK(read(plus(torchrun_eight, {{"TORCHELASTIC_RUN_ID", "job9"}, {"HOCKET_TOKEN", "mine"}})).token == "mine");
}

TEST_CASE("if torchrun's agent holds the port, the next port is used") {
  const variables with_agent = plus(torchrun_eight, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  CHECK(read(with_agent).port == 29501);
  CHECK(read(plus(torchrun_eight, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).port == 29500);
  CHECK(read(plus(with_agent, {{"HOCKET_STORE", "tcp://h:7"}})).port == 7);
  CHECK(complaint(plus(with_agent, {{"MASTER_PORT", "65535"}})).rfind("MASTER_PORT='65535'", 0) == 0);
}

TEST_CASE("rank numbers are also read from the variables of mpirun, mpiexec and srun") {
  struct row {
    variables set;
    int rank, ranks, local_rank, local_ranks;
    const char* token;
  };
  const row rows[] = {{open_mpi, 3, 4, 1, 2, "1286275073"}, {mpich, 5, 6, 2, 3, ""}, {srun, 7, 8, 1, 0, "77"}};
  for (const row& each : rows) {
    const world_description world = read(plus(each.set, meeting_place));
    INFO(world.source);
    CHECK(world.rank == each.rank);
    CHECK(world.ranks == each.ranks);
    CHECK(world.local_rank == each.local_rank);
    CHECK(world.local_ranks == each.local_ranks);
    CHECK(world.token == each.token);
    CHECK(world.address == "node7");
    CHECK(read(plus(plus(each.set, meeting_place), {{"HOCKET_TOKEN", "mine"}})).token == "mine");
    CHECK(read(plus(each.set, hocket_four)).rank == 2);
    CHECK(read(plus(each.set, torchrun_eight)).rank == 5);
  }
  CHECK(read(plus(plus(srun, open_mpi), meeting_place)).rank == 3);  // an mpirun that starts its processes by srun
}

TEST_CASE("a single process of mpirun or srun, and a Slurm batch script, is a world of one rank") {
  const variables alone = plus(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}});
  CHECK(read(alone).ranks == 1);
  CHECK(read(plus(alone, meeting_place)).ranks == 1);
  CHECK(read(plus(srun, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}})).ranks == 1);
  CHECK(read(slurm_batch_script).ranks == 1);
}

TEST_CASE("an empty variable counts as not set") {
  CHECK(read({{"HOCKET_RANK", ""}, {"HOCKET_RANKS", ""}, {"RANK", ""}, {"HOCKET_TIMEOUT", ""}}).ranks == 1);
  CHECK(read(plus(torchrun_eight, {{"HOCKET_RANK", ""}, {"HOCKET_RANKS", ""}})).rank == 5);
}

TEST_CASE("errors about incomplete and invalid variables name the variable and give the value or the valid form") {
  struct row {
    variables set;
    const char* name;   // must begin the message
    const char* value;  // must occur in it
  };
  const row rows[] = {
      {{{"HOCKET_RANK", "3"}}, "HOCKET_RANKS is not set", "HOCKET_RANK='3'"},
      {{{"HOCKET_RANKS", "3"}}, "HOCKET_RANK is not set", "HOCKET_RANKS='3'"},
      {{{"HOCKET_RANK", "0"}, {"HOCKET_RANKS", "2"}}, "HOCKET_STORE is not set", "tcp://host:port"},
      {{{"HOCKET_STORE", "tcp://a:1"}}, "HOCKET_RANK is not set", "tcp://a:1"},
      {plus(hocket_four, {{"HOCKET_RANK", "4"}}), "HOCKET_RANK='4'", "HOCKET_RANKS='4'"},
      {plus(hocket_four, {{"HOCKET_RANK", "-1"}}), "HOCKET_RANK='-1'", "from 0 to 65535"},
      {plus(hocket_four, {{"HOCKET_RANK", "two"}}), "HOCKET_RANK='two'", "whole number"},
      {plus(hocket_four, {{"HOCKET_RANK", "1x"}}), "HOCKET_RANK='1x'", "whole number"},
      {plus(hocket_four, {{"HOCKET_RANK", " 1"}}), "HOCKET_RANK=' 1'", "whole number"},
      {plus(hocket_four, {{"HOCKET_RANKS", "0"}}), "HOCKET_RANKS='0'", "from 1 to 65536"},
      {plus(hocket_four, {{"HOCKET_RANKS", "99999999999"}}), "HOCKET_RANKS='99999999999'", "whole number"},
      {plus(hocket_four, {{"HOCKET_LOCAL_RANK", "0"}}), "HOCKET_LOCAL_RANKS is not set", "HOCKET_LOCAL_RANK='0'"},
      {plus(hocket_four, {{"HOCKET_LOCAL_RANK", "2"}, {"HOCKET_LOCAL_RANKS", "2"}}), "HOCKET_LOCAL_RANK='2'", "less"},
      {plus(hocket_four, {{"HOCKET_STORE", "node7:4000"}}), "HOCKET_STORE='node7:4000'", "tcp://host:port"},
      {plus(hocket_four, {{"HOCKET_STORE", "tcp://node7"}}), "HOCKET_STORE='tcp://node7'", "tcp://host:port"},
      {plus(hocket_four, {{"HOCKET_STORE", "tcp://:80"}}), "HOCKET_STORE='tcp://:80'", "tcp://host:port"},
      {plus(hocket_four, {{"HOCKET_STORE", "tcp://fe80::1:80"}}), "HOCKET_STORE='tcp://fe80::1:80'", "tcp://"},
      {plus(hocket_four, {{"HOCKET_STORE", "tcp://h:0"}}), "HOCKET_STORE='tcp://h:0'", "1 to 65535"},
      {plus(hocket_four, {{"HOCKET_STORE", "tcp://h:65536"}}), "HOCKET_STORE='tcp://h:65536'", "1 to 65535"},
      {plus(hocket_four, {{"HOCKET_STORE", "tcp://h:8o"}}), "HOCKET_STORE='tcp://h:8o'", "1 to 65535"},
      {plus(hocket_four, {{"HOCKET_STORE", "dir://relative"}}), "HOCKET_STORE='dir://relative'", "dir:///path"},
      {plus(hocket_four, {{"HOCKET_TIMEOUT", "soon"}}), "HOCKET_TIMEOUT='soon'", "seconds"},
      {plus(hocket_four, {{"HOCKET_TIMEOUT", "0"}}), "HOCKET_TIMEOUT='0'", "seconds"},
      {plus(hocket_four, {{"HOCKET_TIMEOUT", "-3"}}), "HOCKET_TIMEOUT='-3'", "seconds"},
      {plus(hocket_four, {{"HOCKET_TIMEOUT", "nan"}}), "HOCKET_TIMEOUT='nan'", "seconds"},
      {plus(hocket_four, {{"HOCKET_TIMEOUT", "1e300"}}), "HOCKET_TIMEOUT='1e300'", "seconds"},
      {plus(hocket_four, {{"HOCKET_RANKS", "65537"}}), "HOCKET_RANKS='65537'", "from 1 to 65536"},
      {plus(hocket_four, {{"HOCKET_RANKS", "2147483647"}}), "HOCKET_RANKS='2147483647'", "from 1 to 65536"},
      {plus(hocket_four, {{"HOCKET_RANKS", "2147483648"}}), "HOCKET_RANKS='2147483648'", "from 1 to 65536"},
      {plus(torchrun_eight, {{"WORLD_SIZE", "2147483647"}}), "WORLD_SIZE='2147483647'", "from 1 to 65536"},
      {plus(torchrun_eight, {{"LOCAL_WORLD_SIZE", "2147483647"}}), "LOCAL_WORLD_SIZE='2147483647'", "to 65536"},
      {{{"RANK", "1"}}, "WORLD_SIZE is not set", "RANK='1'"},
      {plus(torchrun_eight, {{"RANK", "8"}}), "RANK='8'", "WORLD_SIZE='8'"},
      {plus(torchrun_eight, {{"LOCAL_RANK", "4"}}), "LOCAL_RANK='4'", "LOCAL_WORLD_SIZE"},
      {plus(torchrun_eight, {{"MASTER_ADDR", ""}}), "MASTER_ADDR is not set", "rank 0"},
      {plus(torchrun_eight, {{"MASTER_PORT", "99999"}}), "MASTER_PORT='99999'", "65535"},
      {plus(torchrun_eight, {{"MASTER_PORT", ""}}), "MASTER_PORT is not set", "65535"},
      {open_mpi, "HOCKET_STORE is not set", "mpirun has started this process as one of 4"},
      {mpich, "HOCKET_STORE is not set", "mpiexec has started this process as one of 6"},
      {srun, "HOCKET_STORE is not set", "srun has started this process as one of 8"},
      {plus(plus(open_mpi, meeting_place), {{"OMPI_COMM_WORLD_LOCAL_RANK", "2"}}), "OMPI_COMM_WORLD_LOCAL_RANK='2'",
       "less than OMPI_COMM_WORLD_LOCAL_SIZE"},
      {plus(open_mpi, {{"OMPI_COMM_WORLD_RANK", "4"}}), "OMPI_COMM_WORLD_RANK='4'", "OMPI_COMM_WORLD_SIZE='4'"},
  };
  for (const row& each : rows) {
    const std::string text = complaint(each.set);
    INFO("expected: " << each.name << " ... " << each.value << "\n     got: " << text);
    CHECK(text.rfind(each.name, 0) == 0);
    CHECK(text.find(each.value) != std::string::npos);
  }
}
