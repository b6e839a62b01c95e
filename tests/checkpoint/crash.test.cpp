// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What is left when a process ends, or power is lost, at any point of a save: every checkpoint with a manifest is whole,
/// and a save that has returned is not lost.
#include "checkpoint/storage_model.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/bootstrap/launch.hpp>
#include <hocket/checkpoint/store.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace checkpoint_test;
using namespace hocket::checkpoint;
using hocket::platform::file_system;
using hocket_test::on_ranks;
using hocket_test::scratch_directory;
using hocket_test::thread_rank;

constexpr int saving_ranks = 2;
const store_options keeps_one{.keep = {.last = 1}};

/// Saves one step, with values that depend on it.
void save_step(const std::string& path, file_system& files, std::uint64_t step) {
  on_ranks(saving_ranks, [&](thread_rank& me) {
    std::vector<std::uint64_t> own(700, step * 10 + static_cast<std::uint64_t>(me.rank())), shared(8200, step);
    state now;
    now.add("own", {700 * saving_ranks}, {{700 * static_cast<std::uint64_t>(me.rank())}, {700}}, own);
    now.add("shared", shared);
    store_options options = keeps_one;
    options.files = &files;
    store(path, me.comm(), options).save(step, now);
  });
}

/// Returns what is wrong in a folder after a crash: every checkpoint with a manifest must be whole, and the newest must be
/// that of `least_step` or a later one.
std::string problem_in(file_system& files, const std::string& path, std::uint64_t least_step) {
  const folder all(files, path);
  std::vector<position> valid;
  const hocket::failure unreadable = all.find_valid(valid);
  if (unreadable && least_step > 0) return unreadable.message();
  if (least_step > 0 && (valid.empty() || valid.front().step < least_step))
    return "step " + std::to_string(least_step) + " is lost";
  for (const position& each : valid) {
    std::string text;
    manifest found;
    hocket::failure cause = all.read(each, text, found);
    if (!cause) cause = verify(files, all.path_of(each), found);
    if (cause) return cause.message();
  }
  return {};
}

/// Saves of some steps on storage that records them.
class history {
 public:
  /// @param is_made whether the folder exists before, made by a process that has ended before it synced anything
  explicit history(bool is_made = false) {
    if (is_made) files_.make_folder(path);
    for (std::uint64_t step = 1; step <= steps; ++step) {
      save_step(path, files_, step);
      returned_.push_back(files_.events().size());
    }
  }

  /// Returns the first problem that a loss of power can cause if the syncs for which `ignored` is true were missing.
  std::string first_problem(const std::function<bool(const std::string&)>& ignored) {
    for (std::size_t count = 0; count <= files_.events().size(); ++count) {
      const stored_changes changes = stored_after(files_.events(), count, ignored);
      std::uint64_t least_step = 0;
      while (least_step < steps && returned_[least_step] <= count) ++least_step;
      std::string problem = problem_after(changes, least_step);
      if (!problem.empty()) return "after " + std::to_string(count) + " events: " + problem;
    }
    return {};
  }

  std::vector<std::string> sync_labels() const {
    std::vector<std::string> result;
    for (const auto& each : files_.events()) {
      if (each.is_sync) result.push_back(each.label);
    }
    return result;
  }
  std::size_t images() const noexcept { return images_; }

 private:
  static constexpr std::uint64_t steps = 2;
  static constexpr const char* path = "/saved";
  static constexpr std::size_t most_of_all = 12, random_choices = 1000;

  std::string problem_after(const stored_changes& changes, std::uint64_t least_step) {
    const std::size_t pending = changes.pending.size();
    const bool takes_all = pending <= most_of_all;
    const std::uint64_t choices = takes_all ? std::uint64_t{1} << pending : random_choices;
    for (std::uint64_t choice = 0; choice < choices; ++choice) {
      std::vector<bool> is_lost(changes.all.size());
      for (std::size_t i = 0; i < pending; ++i)
        is_lost[changes.pending[i]] = takes_all ? (choice >> i & 1U) != 0 : (random_() & 1U) != 0;
      image left;
      for (std::size_t i = 0; i < changes.all.size(); ++i) {
        if (!is_lost[i]) apply(*changes.all[i], left);
      }
      ++images_;
      image_files files(std::move(left));
      std::string problem = problem_in(files, path, least_step);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  recorded_files files_;
  std::vector<std::size_t> returned_;  ///< number of events when the save of a step returned
  std::size_t images_ = 0;
  std::mt19937_64 random_{1};
};

/// Ends the process at a given system call.
class deadly_files : public file_system {
 public:
  explicit deadly_files(int calls) : left_(calls) {}

  int make_folder(const std::string& path) override { return counted(), file_system::make_folder(path); }
  int open(const std::string& path, file_use how, file_descriptor& result) override {
    return counted(), file_system::open(path, how, result);
  }
  int write(int file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& written) override {
    return counted(), file_system::write(file, bytes, offset, written);
  }
  int read(int file, std::span<std::byte> bytes, std::uint64_t offset, std::size_t& count) override {
    return counted(), file_system::read(file, bytes, offset, count);
  }
  int size_of(int file, std::uint64_t& bytes) override { return counted(), file_system::size_of(file, bytes); }
  int sync(int file) override { return counted(), file_system::sync(file); }
  int rename_to_new(const std::string& from, const std::string& to) override {
    return counted(), file_system::rename_to_new(from, to);
  }
  int rename(const std::string& from, const std::string& to) override {
    return counted(), file_system::rename(from, to);
  }
  int remove(const std::string& path) override { return counted(), file_system::remove(path); }
  int remove_folder(const std::string& path) override { return counted(), file_system::remove_folder(path); }
  int list(const std::string& path, std::vector<std::string>& names) override {
    return counted(), file_system::list(path, names);
  }

 private:
  void counted() {
    if (left_.fetch_sub(1) == 0) ::raise(SIGKILL);
  }
  std::atomic<int> left_;
};

}  // namespace

TEST_CASE("no loss of power at any point of a save damages a checkpoint, or loses one whose save has returned") {
  for (const bool is_made : {false, true}) {
    CAPTURE(is_made);
    history saves(is_made);
    CHECK(saves.first_problem([](const std::string&) { return false; }) == "");
    CHECK(saves.images() > 500);
  }
}

TEST_CASE("each sync of a save is needed: without it, some loss of power damages or loses a checkpoint") {
  history saves;
  // The sync of a kind: of a file, of a checkpoint's folder by its writers, when it is made valid, and before files are
  // removed, of the folder of all checkpoints, and of its parent.
  const auto kind_of = [](const std::string& label) -> std::string {
    if (label.find("/shard-") != label.npos) return "shard";
    if (label.find("/manifest.new") != label.npos) return "manifest";
    if (label.find("/step-") == label.npos) return label.starts_with("/saved ") ? "all checkpoints" : "parent";
    const int number = std::stoi(label.substr(label.find(' ')));
    return number <= saving_ranks ? "writers" : number == saving_ranks + 1 ? "commit" : "removal";
  };
  std::set<std::string> kinds;
  for (const std::string& label : saves.sync_labels()) kinds.insert(kind_of(label));
  CHECK(kinds.size() == 7);
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    CHECK(saves.first_problem([&](const std::string& label) { return kind_of(label) == kind; }) != "");
  }
}

TEST_CASE("a process that is killed at any system call of a save leaves whole checkpoints, and the next save works") {
  int calls = 0;
  for (bool is_killed = true; is_killed; ++calls) {
    CAPTURE(calls);
    const scratch_directory folder;
    const std::string path = folder.path() + "/saved";
    file_system files;
    for (const std::uint64_t step : {1U, 2U}) save_step(path, files, step);
    const auto results = hocket::launch::run_processes(1,
                                                       [&](const auto&) {
                                                         deadly_files deadly(calls);
                                                         save_step(path, deadly, 3);
                                                         return 0;
                                                       },
                                                       {.directory = {}});
    is_killed = results[0].signal == SIGKILL;
    if (!is_killed) REQUIRE(results[0].succeeded());
    CHECK(problem_in(files, path, is_killed ? 2 : 3) == "");
    save_step(path, files, 4);
    CHECK(problem_in(files, path, 4) == "");
  }
  CHECK(calls > 20);
}
