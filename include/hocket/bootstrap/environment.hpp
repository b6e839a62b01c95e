// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads this process's rank, the number of ranks and the store's address from the variables that the launcher set.
///
/// | variable | meaning |
/// |---|---|
/// | `HOCKET_RANK`, `HOCKET_RANKS` | this rank, and the number of ranks |
/// | `HOCKET_LOCAL_RANK`, `HOCKET_LOCAL_RANKS` | the same among the ranks of this machine; both or neither |
/// | `HOCKET_STORE` | `tcp://host:port` (rank 0 serves there) or `dir:///path` (a directory that all ranks see) |
/// | `HOCKET_TOKEN` | excludes other jobs and foreign connections; the same on all ranks |
/// | `HOCKET_TIMEOUT` | seconds that start-up, and by default each call, may take; 60 if not set |
/// | `HOCKET_FLIGHT_RECORDER` | a directory to which each rank writes its last calls when its communicator has failed |
/// | `HOCKET_STORE_FD` | for rank 0: a socket that already listens on that port, from `launch::spawn` |
/// | `HOCKET_STORE_OPEN` | `1`: rank 0's port was open before any rank started; a refused rank need not try again |
///
/// Without `HOCKET_RANK` and `HOCKET_RANKS` the torchrun contract is read: `RANK`, `WORLD_SIZE`, `LOCAL_RANK`,
/// `LOCAL_WORLD_SIZE`, `MASTER_ADDR`, `MASTER_PORT`. Where torchrun's own agent serves at `MASTER_PORT`
/// (`TORCHELASTIC_USE_AGENT_STORE=True`) hocket uses the port after it; `HOCKET_STORE` overrides both.
///
/// Without these as well, rank and number of ranks are read from the variables of Open MPI's mpirun, MPICH's mpiexec or
/// Slurm's srun; `HOCKET_STORE` is then required. Without any of these the program is a world of one. An empty variable
/// counts as not set.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/text.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// Ranks that a world may have: those that the tags of messages can tell apart.
inline constexpr int most_ranks = 65536;

/// What a process knows about its world before it communicates.
struct world_description {
  int rank = 0;
  int ranks = 1;
  int local_rank = -1;                                 ///< among the ranks of this machine; -1: not known
  int local_ranks = 0;                                 ///< 0: not known
  std::string address;                                 ///< of rank 0's store
  std::uint16_t port = 0;                              ///< of rank 0's store
  std::string directory;                               ///< of the directory store; then `address` is empty
  std::string token;                                   ///< secret that ranks present to rank 0's store; empty: none
  std::chrono::nanoseconds timeout = default_timeout;  ///< how long start-up may wait for other ranks
  std::string flight_recorder;  ///< directory for the flight records of failed communicators; empty: none
  int listener = -1;            ///< on rank 0: a socket that already listens at `port`; start-up closes it
  bool open = false;            ///< `port` was open before any rank started: if it is not, rank 0 has ended
  std::string source;           ///< where this was read from, for messages: "HOCKET_* variables"
};

namespace detail {

/// Reads variables through any function that behaves like `std::getenv`.
class variable_reader {
 public:
  template <typename Lookup>
  explicit variable_reader(const Lookup& lookup) noexcept
      : object_(&lookup), look_up_([](const void* object, const char* name) -> const char* {
          return (*static_cast<const Lookup*>(object))(name);
        }) {}

  std::string_view text(const char* name) const {
    const char* value = look_up_(object_, name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  }
  bool has(const char* name) const { return !text(name).empty(); }

  [[noreturn]] void reject(const char* name, const std::string& what_is_right) const {
    const std::string state = has(name) ? hocket::detail::concat({"='", text(name), "'"}) : " is not set";
    raise(errc::bad_environment, hocket::detail::concat({name, state, ": ", what_is_right}));
  }

  int integer(const char* name, int least, int most) const {
    const std::string_view value = text(name);
    int result = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (value.empty() || problem != std::errc() || end != value.data() + value.size() || result < least ||
        result > most) {
      reject(name, hocket::detail::concat({"it must be a whole number from ", least, " to ", most}));
    }
    return result;
  }

  /// Returns true if both are set and false if neither is; otherwise raises an error.
  bool has_pair(const char* first, const char* second) const {
    if (has(first) == has(second)) return has(first);
    const char* there = has(first) ? first : second;
    const char* missing = has(first) ? second : first;
    reject(missing, hocket::detail::concat({"set it too, since ", there, "='", text(there), "', or set neither"}));
  }

 private:
  const void* object_;
  const char* (*look_up_)(const void*, const char*);
};

inline void read_ranks(const variable_reader& variables, const char* rank, const char* ranks, int& rank_value,
                       int& ranks_value) {
  ranks_value = variables.integer(ranks, 1, most_ranks);
  rank_value = variables.integer(rank, 0, most_ranks - 1);
  if (rank_value >= ranks_value) {
    variables.reject(rank, hocket::detail::concat({"it must be less than ", ranks, "='", variables.text(ranks),
                                                   "', because ranks count from 0"}));
  }
}

/// `tcp://host:port`, `tcp://[address]:port` or `dir:///path`.
inline void read_store(const variable_reader& variables, world_description& world) {
  const char* name = "HOCKET_STORE";
  const char* right =
      "it must be tcp://host:port, with the host that rank 0 runs on, or dir:///path of a directory "
      "that all ranks see";
  const std::string_view value = variables.text(name);
  world.address.clear();
  world.port = 0;
  if (value.substr(0, 6) == "dir://") {
    world.directory = value.substr(6);
    if (world.directory.empty() || world.directory.front() != '/') variables.reject(name, right);
    return;
  }
  if (value.substr(0, 6) != "tcp://") variables.reject(name, right);
  const std::string_view place = value.substr(6);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos || colon == 0) variables.reject(name, right);
  std::string_view host = place.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]/") != std::string_view::npos) {
    variables.reject(name, right);
  }
  const std::string_view port = place.substr(colon + 1);
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), world.port);
  if (port.empty() || problem != std::errc() || end != port.data() + port.size() || world.port == 0) {
    variables.reject(name, "the port must be a whole number from 1 to 65535");
  }
  world.address = host;
}

inline void read_timeout(const variable_reader& variables, world_description& world) {
  const char* name = "HOCKET_TIMEOUT";
  if (!variables.has(name)) return;
  const std::string_view value = variables.text(name);
  double seconds = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (problem != std::errc() || end != value.data() + value.size() || !hocket::detail::is_finite(seconds) ||
      seconds < 1e-9 || seconds > 1e9) {
    variables.reject(name, "it must be a number of seconds, from 1e-9 to 1e9");
  }
  world.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

inline void read_hocket(const variable_reader& variables, world_description& world) {
  world.source = "HOCKET_* variables";
  read_ranks(variables, "HOCKET_RANK", "HOCKET_RANKS", world.rank, world.ranks);
  if (variables.has_pair("HOCKET_LOCAL_RANK", "HOCKET_LOCAL_RANKS")) {
    read_ranks(variables, "HOCKET_LOCAL_RANK", "HOCKET_LOCAL_RANKS", world.local_rank, world.local_ranks);
  }
  if (!variables.has("HOCKET_STORE") && world.ranks > 1) {
    variables.reject("HOCKET_STORE", "set it to tcp://host:port of rank 0, the same on every rank");
  }
  world.open = variables.has("HOCKET_STORE_OPEN") && variables.integer("HOCKET_STORE_OPEN", 0, 1) == 1;
  if (variables.has("HOCKET_STORE_FD") && world.rank == 0) {
    world.listener = variables.integer("HOCKET_STORE_FD", 0, std::numeric_limits<int>::max());
  }
}

/// Reads the local rank and the number of local ranks; a launcher may set one or none. `ranks` may be null.
inline void read_local_ranks(const variable_reader& variables, const char* rank, const char* ranks,
                             world_description& world) {
  if (variables.has(rank)) world.local_rank = variables.integer(rank, 0, most_ranks - 1);
  if (ranks == nullptr || !variables.has(ranks)) return;
  world.local_ranks = variables.integer(ranks, 1, most_ranks);
  if (world.local_rank >= world.local_ranks) variables.reject(rank, std::string("it must be less than ") + ranks);
}

inline void read_torchrun(const variable_reader& variables, world_description& world) {
  world.source = "torchrun variables";
  read_ranks(variables, "RANK", "WORLD_SIZE", world.rank, world.ranks);
  read_local_ranks(variables, "LOCAL_RANK", "LOCAL_WORLD_SIZE", world);
  // torchrun gives each job an id that all of its processes know: enough to distinguish two jobs.
  world.token = variables.text("TORCHELASTIC_RUN_ID");
  if (world.ranks == 1 || variables.has("HOCKET_STORE")) return;
  if (!variables.has("MASTER_ADDR")) variables.reject("MASTER_ADDR", "set it to the host that rank 0 runs on");
  const bool agent_serves = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  world.address = variables.text("MASTER_ADDR");
  const int port = variables.integer("MASTER_PORT", 1, agent_serves ? 65534 : 65535);
  world.port = static_cast<std::uint16_t>(agent_serves ? port + 1 : port);
}

/// The variables in which a launcher passes each process its rank.
struct launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;  ///< null: this launcher does not set it
  const char* job;          ///< distinguishes jobs; may be null
};

/// MPI launchers come first, because they may start their processes by srun. SLURM_NTASKS is unsuitable: Slurm also
/// sets it in a batch script, which is not a rank.
inline constexpr launcher launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr, "SLURM_JOB_ID"},
};

/// Returns the launcher that started this process; null if it is none of these.
inline const launcher* launcher_of(const variable_reader& variables) noexcept {
  for (const launcher& each : launchers) {
    if (variables.has(each.rank) && variables.has(each.ranks)) return &each;
  }
  return nullptr;
}

inline void read_launcher(const variable_reader& variables, const launcher& from, world_description& world) {
  world.source = std::string(from.name) + "'s variables";
  read_ranks(variables, from.rank, from.ranks, world.rank, world.ranks);
  read_local_ranks(variables, from.local_rank, from.local_ranks, world);
  if (from.job != nullptr) world.token = variables.text(from.job);
  if (!variables.has("HOCKET_STORE") && world.ranks > 1) {
    variables.reject("HOCKET_STORE",
                     hocket::detail::concat({from.name, " has started this process as one of ", world.ranks,
                                             "; set it to tcp://host:port of rank 0, the same on every rank. Or set "
                                             "HOCKET_RANK=0 and HOCKET_RANKS=1 for a world of one"}));
  }
}

}  // namespace detail

/// Reads the world from variables. `lookup(name)` behaves like `std::getenv`: the value, or null.
/// **Errors.** `bad_environment` names the variable, its value, and what would be right.
template <typename Lookup>
  requires std::is_invocable_r_v<const char*, const Lookup&, const char*>
world_description read_environment(const Lookup& lookup) {
  const detail::variable_reader variables(lookup);
  world_description world;
  if (variables.has_pair("HOCKET_RANK", "HOCKET_RANKS")) {
    detail::read_hocket(variables, world);
  } else if (variables.has_pair("RANK", "WORLD_SIZE")) {
    detail::read_torchrun(variables, world);
  } else if (const detail::launcher* const launcher = detail::launcher_of(variables)) {
    detail::read_launcher(variables, *launcher, world);
  } else {
    world.source = "nothing: a world of one";
    world.local_rank = 0;
    world.local_ranks = 1;
    if (variables.has("HOCKET_STORE")) {
      variables.reject("HOCKET_RANK", hocket::detail::concat({"set it and HOCKET_RANKS too, since HOCKET_STORE='",
                                                              variables.text("HOCKET_STORE"), "'"}));
    }
  }
  if (variables.has("HOCKET_STORE")) detail::read_store(variables, world);
  if (variables.has("HOCKET_TOKEN")) world.token = variables.text("HOCKET_TOKEN");
  detail::read_timeout(variables, world);
  world.flight_recorder = variables.text("HOCKET_FLIGHT_RECORDER");
  return world;
}

namespace detail {

inline constexpr auto variable_of_this_process = [](const char* name) -> const char* { return std::getenv(name); };

/// Returns the name of the variable that makes this process a rank, as `is_rank` defines it; null if none does.
inline const char* variable_of_rank(const variable_reader& variables) noexcept {
  if (variables.has("HOCKET_RANK")) return "HOCKET_RANK";
  const char* rank = "RANK";
  const char* ranks = "WORLD_SIZE";
  if (!variables.has(rank) || !variables.has(ranks)) {
    const launcher* const from = launcher_of(variables);
    if (from == nullptr) return nullptr;
    rank = from->rank;
    ranks = from->ranks;
  }
  return variables.text(ranks) != "1" ? rank : nullptr;
}

}  // namespace detail

/// Returns the description of a world whose rank and size the program knows. Reads only HOCKET_TIMEOUT and
/// HOCKET_FLIGHT_RECORDER. Raises `invalid_argument` unless 0 <= rank < ranks <= `most_ranks`.
inline world_description world_of(int rank, int ranks) {
  if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) {
    raise(errc::invalid_argument,
          hocket::detail::concat({"rank ", rank, " of ", ranks, " ranks: there must be 1 to ", most_ranks,
                                  " ranks, and the rank must be from 0 to one less"}));
  }
  const detail::variable_reader variables(detail::variable_of_this_process);
  world_description world;
  world.rank = rank;
  world.ranks = ranks;
  world.source = "the program";
  detail::read_timeout(variables, world);
  world.flight_recorder = variables.text("HOCKET_FLIGHT_RECORDER");
  return world;
}

/// Reads the world from the variables of this process.
inline world_description read_environment() { return read_environment(detail::variable_of_this_process); }

/// True if `HOCKET_RANK` makes this process a rank, or the variables of another launcher make it one of several ranks.
/// Those of a single rank are also set where nothing was launched: in batch scripts, containers and notebooks.
inline bool is_rank() noexcept {
  return detail::variable_of_rank(detail::variable_reader(detail::variable_of_this_process)) != nullptr;
}

}  // namespace bootstrap

HOCKET_END_NAMESPACE
