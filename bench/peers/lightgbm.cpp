// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
/// @file
/// Trains a model by LightGBM, with the ranks connected by hocket and by LightGBM's own sockets in turn. Prints the
/// times, and checks that all models are equal. For `./dev compare --lightgbm`; --help describes the options.
#include "lightgbm_hooks.hpp"
#include "lightgbm_library.hpp"
#include "processor.hpp"

#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/launch.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/socket.hpp>
#include <hocket/hocket.hpp>
#include <hocket/ucx.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>

namespace {

constexpr const char* help =
    "lightgbm --library PATH [OPTION...]\n"
    "\n"
    "Trains a model by LightGBM on several processes, with the processes connected by hocket and by LightGBM's own\n"
    "sockets in turn, prints the medians of the times, and checks that the models of all ranks and runs are equal.\n"
    "\n"
    "  --library PATH    lib_lightgbm.so in the folder of the Python wheel of LightGBM 4.6.0\n"
    "  --ranks N         number of processes (2)\n"
    "  --runs N          trainings of each kind (9)\n"
    "  --busy N          processes that compute all the time beside the ranks (0)\n"
    "  --limit SECONDS   time after which a training has failed, and its processes are killed (300)\n"
    "  --small           a small model, for tests\n"
    "  --json FILE       also write the results to FILE\n"
    "  --help            print this text\n"
    "\n"
    "Exit status: 0: the models are equal; 1: they differ; 2: wrong arguments; 3: a training has failed or took "
    "longer\n"
    "than the limit.\n";

struct options {
  std::string library;
  int ranks = 2;
  int runs = 9;
  int busy = 0;
  int limit = 300;
  bool small = false;
  std::string json;
  // The launcher adds these for the ranks.
  std::string folder;
  std::string machines;  // empty: over hocket
};

struct wrong_arguments : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int number_of(const std::string& name, const std::string& text, int least) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || value < least || value > 100'000) {
    throw wrong_arguments(name + " must be a number from " + std::to_string(least) + " to 100000, not '" + text + "'");
  }
  return static_cast<int>(value);
}

options read_options(const std::vector<std::string>& arguments) {
  options result;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    const auto value = [&] {
      if (i + 1 == arguments.size()) throw wrong_arguments(name + " needs a value");
      return arguments[++i];
    };
    if (name == "--library") result.library = value();
    else if (name == "--ranks") result.ranks = number_of(name, value(), 2);
    else if (name == "--runs") result.runs = number_of(name, value(), 1);
    else if (name == "--busy") result.busy = number_of(name, value(), 0);
    else if (name == "--limit") result.limit = number_of(name, value(), 1);
    else if (name == "--small") result.small = true;
    else if (name == "--json") result.json = value();
    else if (name == "--folder") result.folder = value();
    else if (name == "--machines") result.machines = value();
    else throw wrong_arguments("there is no option '" + name + "'");
  }
  if (result.library.empty()) throw wrong_arguments("--library is missing");
  return result;
}

// ---- one training on one rank ---------------------------------------------------------------------------------------

/// The work, equal in all runs.
struct workload {
  explicit workload(bool small) : rows(small ? 20'000 : 200'000), trees(small ? 5 : 20) {}

  std::size_t rows;
  int trees;
  std::size_t features = 50;

  std::string parameters(int ranks) const {
    return "objective=binary tree_learner=data pre_partition=true num_machines=" + std::to_string(ranks) +
           " num_leaves=63 max_bin=255 learning_rate=0.1 num_threads=1 seed=1 deterministic=true force_col_wise=true"
           " verbosity=-1";
  }
};

/// Rows [begin, end) of the data, which do not depend on the number of ranks.
class table {
 public:
  table(const workload& work, std::size_t begin, std::size_t end) {
    rows.reserve((end - begin) * work.features);
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t feature = 0; feature < work.features; ++feature) {
        rows.push_back(random_number(row * (work.features + 1) + feature));
      }
      const float* x = rows.data() + rows.size() - work.features;
      const float noise = random_number(row * (work.features + 1) + work.features);
      labels.push_back(x[0] + 2 * x[1] * x[2] - x[3] * x[3] + x[4] * noise > 0.9F ? 1.0F : 0.0F);
    }
  }

  std::vector<float> rows;
  std::vector<float> labels;

 private:
  /// Returns a number in [0, 1) that depends on `index` only: the hash of splitmix64.
  static float random_number(std::uint64_t index) {
    std::uint64_t bits = (index + 1) * 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
    return static_cast<float>((bits ^ (bits >> 31)) >> 40) * 0x1p-24F;
  }
};

/// The result of one rank.
struct rank_result {
  double seconds = 0;
  lightgbm::traffic hooks;  // while it trained
  std::string model;
};

std::string result_path(const std::string& folder, int rank) { return folder + '/' + std::to_string(rank); }

void write_result(const std::string& path, const rank_result& result) {
  std::ofstream file(path);
  file << result.seconds << ' ' << result.hooks.calls << ' ' << result.hooks.bytes << ' ' << result.hooks.seconds
       << '\n'
       << result.model;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

rank_result read_result(const std::string& path) {
  rank_result result;
  std::ifstream file(path);
  file >> result.seconds >> result.hooks.calls >> result.hooks.bytes >> result.hooks.seconds;
  if (!file || file.get() != '\n') throw std::runtime_error("cannot read the result of a rank, " + path);
  result.model.assign(std::istreambuf_iterator<char>(file), {});
  return result;
}

/// Returns the part of a model that must be equal. The parameters at its end may differ.
std::string trees_of(const std::string& model) { return model.substr(0, model.find("\nparameters:")); }

/// `hooks`: null over sockets.
rank_result train(lightgbm::library& lightgbm, const workload& work, int rank, int ranks, lightgbm::hooks* hooks) {
  const auto first_row = [&](int of) {
    return work.rows * static_cast<std::size_t>(of) / static_cast<std::size_t>(ranks);
  };
  const std::string parameters = work.parameters(ranks);
  lightgbm::library::handle dataset = nullptr;
  {
    const table data(work, first_row(rank), first_row(rank + 1));
    dataset = lightgbm.make_dataset(data.rows, data.labels, parameters);
  }
  const lightgbm::library::handle booster = lightgbm.make_booster(dataset, parameters);
  rank_result result;
  if (hooks != nullptr) hooks->start_counting();
  const double begin = compare::now();
  for (int tree = 0; tree < work.trees; ++tree) {
    if (!lightgbm.train_one_tree(booster)) {
      throw std::runtime_error("the training ended after " + std::to_string(tree) + " trees");
    }
  }
  result.seconds = compare::now() - begin;
  if (hooks != nullptr) result.hooks = hooks->counted();
  result.model = trees_of(lightgbm.model_text(booster));
  lightgbm.free_booster(booster);
  lightgbm.free_dataset(dataset);
  return result;
}

rank_result train_over_hocket(lightgbm::library& lightgbm, const workload& work) {
  hocket::ucx::communicator comm = hocket::ucx::connect();
  lightgbm::hooks hooks(comm);
  hooks.install(lightgbm);
  rank_result result = train(lightgbm, work, comm.rank(), comm.size(), &hooks);
  if (result.hooks.calls == 0) throw std::runtime_error("LightGBM has not called the hooks");
  if (lightgbm::requested_fault() == "wrong" && comm.rank() + 1 == comm.size()) result.model.back() ^= 1;
  lightgbm.disconnect();
  hocket::barrier(comm);
  return result;
}

rank_result train_over_sockets(lightgbm::library& lightgbm, const workload& work, const std::string& machines, int rank,
                               int ranks) {
  std::istringstream list(machines);
  std::string machine;
  for (int i = 0; i <= rank; ++i) std::getline(list, machine, ',');
  lightgbm.connect_by_sockets(machines, std::atoi(machine.c_str() + machine.find(':') + 1), ranks);
  rank_result result = train(lightgbm, work, rank, ranks, nullptr);
  lightgbm.disconnect();
  return result;
}

/// LightGBM's listening thread prints on stdout whatever its verbosity is. The ranks print nothing there.
void discard_stdout() {
  if (std::freopen("/dev/null", "w", stdout) == nullptr) throw std::runtime_error("cannot open /dev/null");
}

int run_rank(const options& wanted) {
  const hocket::bootstrap::world_description world = hocket::bootstrap::read_environment();
  try {
    discard_stdout();
    lightgbm::library lightgbm(wanted.library);
    const workload work(wanted.small);
    const rank_result result = wanted.machines.empty()
                                   ? train_over_hocket(lightgbm, work)
                                   : train_over_sockets(lightgbm, work, wanted.machines, world.rank, world.ranks);
    write_result(result_path(wanted.folder, world.rank), result);
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "lightgbm: rank %d: %s\n", world.rank, problem.what());
    return 3;
  }
}

// ---- the launcher ---------------------------------------------------------------------------------------------------

/// A new folder, which is removed with its files.
class temporary_folder {
 public:
  temporary_folder()
      : path_(std::filesystem::temp_directory_path() / ("hocket-lightgbm-" + hocket::platform::random_name())) {
    std::filesystem::create_directory(path_);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { hocket::platform::remove_flat_directory(path_); }

  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Processes that compute all the time until they are killed, at the latest when this process ends.
class busy_processes {
 public:
  explicit busy_processes(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t parent = ::getpid();
      const pid_t pid = ::fork();
      if (pid < 0) throw std::runtime_error("cannot start a busy process");
      if (pid == 0) compute(parent);
      pids_.push_back(pid);
    }
  }
  busy_processes(const busy_processes&) = delete;
  busy_processes& operator=(const busy_processes&) = delete;
  ~busy_processes() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

 private:
  [[noreturn]] static void compute(pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    for (volatile std::uint64_t counter = 0;;) counter = counter + 1;
  }

  std::vector<pid_t> pids_;
};

/// Returns "127.0.0.1:port" for each rank, with free ports. They are below those that the system gives to connections,
/// so that no connection takes one before a rank listens at it.
std::string free_machines(int ranks) {
  std::random_device source;
  std::uniform_int_distribution<int> any_port(10'000, 30'000);
  std::vector<hocket::platform::file_descriptor> listeners;
  std::string machines;
  for (int attempts = 0; listeners.size() < static_cast<std::size_t>(ranks); ++attempts) {
    if (attempts == 1000) throw std::runtime_error("there are no free ports");
    const int port = any_port(source);
    hocket::platform::file_descriptor listener;
    hocket::failure cause;
    if (hocket::platform::listen_on("0.0.0.0", static_cast<std::uint16_t>(port), listener, cause) != 0) continue;
    listeners.push_back(std::move(listener));
    machines += (machines.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  return machines;
}

/// The ways to connect the ranks.
struct way {
  const char* name;
  const char* key;  // in JSON
  bool is_hocket;
};
constexpr std::array<way, 2> ways{{{"hocket", "hocket", true}, {"own sockets", "sockets", false}}};

/// One training by all ranks.
struct training {
  double seconds = 0;       // of the slowest rank
  lightgbm::traffic hooks;  // of rank 0
  std::vector<std::string> models;
};

training train_on_all_ranks(const options& wanted, const std::vector<std::string>& arguments, const way& how) {
  const temporary_folder folder;
  std::vector<std::string> command = arguments;
  command.insert(command.end(), {"--folder", folder.path()});
  if (!how.is_hocket) command.insert(command.end(), {"--machines", free_machines(wanted.ranks)});
  hocket::launch::spawn_options options;
  options.timeout = std::chrono::seconds(wanted.limit);
  const int status = hocket::launch::spawn(wanted.ranks, command, options);
  if (status == 124) throw std::runtime_error("it took more than " + std::to_string(wanted.limit) + " s");
  if (status != 0) throw std::runtime_error("a rank ended with status " + std::to_string(status));
  training result;
  for (int rank = 0; rank < wanted.ranks; ++rank) {
    rank_result each = read_result(result_path(folder.path(), rank));
    result.seconds = std::max(result.seconds, each.seconds);
    if (rank == 0) result.hooks = each.hooks;
    result.models.push_back(std::move(each.model));
  }
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Returns the first line in which two texts differ, as a number from 1.
int first_difference(const std::string& one, const std::string& other) {
  const auto at = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
  return 1 + static_cast<int>(std::count(one.begin(), at, '\n'));
}

/// All trainings, and their comparison.
class comparison {
 public:
  comparison(const options& wanted, std::vector<std::string> arguments)
      : wanted_(wanted), arguments_(std::move(arguments)) {}

  void run() {
    const busy_processes busy(wanted_.busy);
    for (int number = 0; number < wanted_.runs; ++number) {
      std::printf("run %d:", number + 1);
      for (std::size_t i = 0; i < ways.size(); ++i) run_one(number, (static_cast<std::size_t>(number) + i) % 2);
      std::printf("\n");
    }
  }

  void print() const {
    const workload work(wanted_.small);
    std::printf("%d ranks, %d busy processes, %zu rows of %zu features, %d trees, %d runs\n", wanted_.ranks,
                wanted_.busy, work.rows, work.features, work.trees, wanted_.runs);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto [least, most] = std::minmax_element(seconds_[i].begin(), seconds_[i].end());
      std::printf("%-12s median %.3f s (%.3f to %.3f)\n", ways[i].name, median(seconds_[i]), *least, *most);
    }
    std::printf("in hocket's calls on rank 0: median %.3f s, for %lld calls that moved %.1f MB\n",
                median(hook_seconds_), static_cast<long long>(hooks_.calls), 1e-6 * static_cast<double>(hooks_.bytes));
    std::printf("own sockets / hocket: %.2f\n", ratio());
    std::printf("models: %s\n", difference_.empty() ? "equal on all ranks and in all runs" : difference_.c_str());
  }

  void write_json(const std::string& path) const {
    std::ofstream file(path);
    file << "{\"ranks\":" << wanted_.ranks << ",\"busy\":" << wanted_.busy << ",\"runs\":" << wanted_.runs
         << ",\"small\":" << (wanted_.small ? "true" : "false") << ",\"lightgbm\":\"" << lightgbm::version << '"';
    for (std::size_t i = 0; i < ways.size(); ++i) {
      file << ",\"" << ways[i].key << "_s\":" << median(seconds_[i]) << ",\"" << ways[i].key << "_runs_s\":";
      write_list(file, seconds_[i]);
    }
    file << ",\"ratio\":" << ratio() << ",\"calls\":" << hooks_.calls << ",\"bytes\":" << hooks_.bytes
         << ",\"calls_s\":" << median(hook_seconds_) << ",\"difference\":" << hocket::detail::json_text(difference_)
         << "}\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }

  bool models_are_equal() const { return difference_.empty(); }

 private:
  void run_one(int number, std::size_t which) {
    const way& how = ways[which];
    training done;
    try {
      done = train_on_all_ranks(wanted_, arguments_, how);
    } catch (const std::exception& problem) {
      throw std::runtime_error("run " + std::to_string(number + 1) + " over " + how.name +
                               " failed: " + problem.what());
    }
    seconds_[which].push_back(done.seconds);
    if (how.is_hocket) {
      hooks_ = done.hooks;
      hook_seconds_.push_back(done.hooks.seconds);
    }
    std::printf(" %s %.3f s", how.name, done.seconds);
    std::fflush(stdout);
    for (std::size_t rank = 0; rank < done.models.size(); ++rank) {
      compare_model(done.models[rank],
                    "run " + std::to_string(number + 1) + " over " + how.name + ", rank " + std::to_string(rank));
    }
  }

  /// The first model is the one that all others must equal.
  void compare_model(const std::string& model, const std::string& where) {
    if (!reference_) reference_ = model;
    if (model == *reference_ || !difference_.empty()) return;
    difference_ = "DIFFERENT: that of " + where + " differs from that of run 1 over " + ways[0].name +
                  ", rank 0, in line " + std::to_string(first_difference(model, *reference_));
  }

  double ratio() const { return median(seconds_[1]) / median(seconds_[0]); }

  static void write_list(std::ostream& file, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) file << (i == 0 ? '[' : ',') << values[i];
    file << ']';
  }

  options wanted_;
  std::vector<std::string> arguments_;
  std::array<std::vector<double>, ways.size()> seconds_;
  std::vector<double> hook_seconds_;
  lightgbm::traffic hooks_;
  std::optional<std::string> reference_;
  std::string difference_;
};

int compare_all(const options& wanted, const std::vector<std::string>& arguments) {
  try {
    const lightgbm::library check(wanted.library);  // one message, and not one for each rank
    comparison all(wanted, arguments);
    all.run();
    all.print();
    if (!wanted.json.empty()) all.write_json(wanted.json);
    return all.models_are_equal() ? 0 : 1;
  } catch (const std::exception& problem) {
    std::fflush(stdout);
    std::fprintf(stderr, "\nlightgbm: %s\n", problem.what());
    return 3;
  }
}

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> arguments(values, values + count);
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    std::fputs(help, stdout);
    return 0;
  }
  try {
    const options wanted = read_options(arguments);
    return hocket::launch::is_rank() ? run_rank(wanted) : compare_all(wanted, arguments);
  } catch (const wrong_arguments& problem) {
    std::fprintf(stderr, "lightgbm: %s; --help lists the options\n", problem.what());
    return 2;
  }
}
