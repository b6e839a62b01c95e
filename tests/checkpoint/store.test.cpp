// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Saving and loading on threads as ranks: other numbers of ranks, damage, errors of the system, and what is kept.
#include <hocket/checkpoint/store.hpp>

#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "support/text.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/barrier.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

using namespace hocket_test;
using namespace hocket::checkpoint;
using hocket::errc;
using hocket::platform::file_system;

/// The state of one rank: rows, columns, copies, a flat slice of rows, a number, and tensors without elements. Each element
/// has a value that depends on its position and on `seed`.
class sample {
 public:
  sample(const thread_rank& me, std::uint32_t seed) {
    const auto r = static_cast<std::uint64_t>(me.rank()), p = static_cast<std::uint64_t>(me.size());
    const auto slice = [&](std::uint64_t n) { return std::pair(n * r / p, n * (r + 1) / p - n * r / p); };
    const auto [row, rows] = slice(101);
    const auto [column, columns] = slice(37);
    const auto [element, elements] = slice(53 * 7);
    add(rows_, "rows", {101, 77}, {{row, 0}, {rows, 77}}, seed);
    add(columns_, "columns", {211, 37}, {{0, column}, {211, columns}}, seed);
    add(copies_, "copies", {30'000}, whole_of({30'000}), seed);
    add(cube_, "cube", {5, 1, 9}, whole_of({5, 1, 9}), seed);
    flat_.resize(elements);
    fill(flat_, rectangle{{element}, {elements}}, {53 * 7}, seed);
    now.add_range("flat", {53, 7}, whole_of({53, 7}), element, std::span(flat_));
    add(none_, "none", {0, 3}, whole_of({0, 3}), seed);
    number_ = seed;
    now.add("number", number_);
    now.text["seed"] = std::to_string(seed);
  }

  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> result;
    for (const auto* each : {&rows_, &columns_, &copies_, &cube_, &flat_, &none_})
      result.insert(result.end(), each->begin(), each->end());
    result.push_back(static_cast<std::uint32_t>(number_));
    return result;
  }

  /// Changes the elements in place.
  void overwrite(const thread_rank& me, std::uint32_t seed) {
    const sample other(me, seed);
    rows_ = other.rows_, columns_ = other.columns_, copies_ = other.copies_, cube_ = other.cube_, flat_ = other.flat_;
    number_ = seed;
    now.text = other.now.text;
  }

  state now;

 private:
  using values = std::vector<std::uint32_t>;

  static void fill(values& to, const rectangle& where, const sizes_type& extents, std::uint32_t seed) {
    if (where.is_empty()) return;
    sizes_type at = where.begin;
    std::size_t i = 0;
    do to[i++] = seed * 1'000'003U + static_cast<std::uint32_t>(detail::offset_in(whole_of(extents), at));
    while (detail::advance(at, where, at.size()));
  }
  void add(values& to, const char* name, const sizes_type& extents, const rectangle& where, std::uint32_t seed) {
    to.resize(where.volume());
    fill(to, where, extents, seed);
    now.add(name, extents, where, to);
  }

  values rows_, columns_, copies_, cube_, flat_, none_;
  std::uint64_t number_ = 0;
};

/// Saves with the given seeds, as steps 1, 2, ….
void save_all(const std::string& folder, int ranks, const std::vector<std::uint32_t>& seeds,
              store_options options = {}) {
  on_ranks(ranks, [&](thread_rank& me) {
    store saved(folder, me.comm(), options);
    for (std::size_t i = 0; i < seeds.size(); ++i) saved.save(i + 1, sample(me, seeds[i]).now);
  });
}

/// Loads, and checks that all ranks have the state with `seed`, or that there is none if `seed` is 0.
std::vector<std::string> check_load(const std::string& folder, int ranks, std::uint32_t seed,
                                    store_options options = {}) {
  std::vector<std::string> refused;
  std::mutex mutex;
  on_ranks(ranks, [&](thread_rank& me) {
    sample found(me, 99);
    store saved(folder, me.comm(), options);
    const auto loaded = saved.load_newest(found.now);
    if (!me.check(loaded.has_value() == (seed != 0), "whether there is a checkpoint") || !loaded) return;
    me.check(found.all() == sample(me, seed).all(), "the elements");
    me.check(found.now.text["seed"] == std::to_string(seed), "the text");
    const std::lock_guard lock(mutex);
    if (me.rank() == 0) refused = loaded->refused;
  });
  return refused;
}

/// Returns the error of `act`, which must be equal on all ranks.
std::string error_on(int ranks, errc expected, const std::function<void(thread_rank&)>& act) {
  std::vector<std::string> texts(static_cast<std::size_t>(ranks));
  on_ranks(ranks, [&](thread_rank& me) {
    try {
      act(me);
    } catch (const hocket::error& cause) {
      me.check(cause.code() == expected, cause.what());
      texts[static_cast<std::size_t>(me.rank())] = cause.cause().reason;
    }
  });
  for (const std::string& each : texts) CHECK(each == texts[0]);
  return texts[0];
}

/// Counts the bytes that are read, and lets calls fail.
class watched_files : public file_system {
 public:
  int open(const std::string& path, hocket::platform::file_use how,
           hocket::platform::file_descriptor& result) override {
    const int problem = error_of("open", path);
    return problem != 0 ? problem : file_system::open(path, how, result);
  }
  int write(int file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& written) override {
    if (const int problem = error_of("write", path_of(file)); problem != 0) return problem;
    // Short, as a signal or a full disk would make it.
    return file_system::write(file, bytes.first(std::max<std::size_t>(1, bytes.size() / 2)), offset, written);
  }
  int read(int file, std::span<std::byte> bytes, std::uint64_t offset, std::size_t& count) override {
    if (const int problem = error_of("read", path_of(file)); problem != 0) return problem;
    const std::size_t most = short_reads ? std::min<std::size_t>(bytes.size(), 8192) : bytes.size();
    const int result = file_system::read(file, bytes.first(most), offset, count);
    bytes_read += count;
    return result;
  }
  int sync(int file) override {
    const int problem = error_of("sync", path_of(file));
    return problem != 0 ? problem : file_system::sync(file);
  }
  int size_of(int file, std::uint64_t& bytes) override {
    const int problem = error_of("size_of", path_of(file));
    return problem != 0 ? problem : file_system::size_of(file, bytes);
  }
  int make_folder(const std::string& path) override {
    const int problem = error_of("make_folder", path);
    return problem != 0 ? problem : file_system::make_folder(path);
  }
  int rename_to_new(const std::string& from, const std::string& to) override {
    const int problem = error_of("rename", to);
    return problem != 0 ? problem : file_system::rename_to_new(from, to);
  }

  /// Changes what fails, also while a store removes old checkpoints in the background.
  void let_fail(const std::string& call, int with) {
    const std::lock_guard lock(mutex_);
    failing_call = call;
    error = with;
  }

  // Set these before there are other threads.
  std::string failing_call{};  ///< which call fails
  std::string failing_path{};  ///< for paths with this text
  int error = 0;
  bool short_reads = false;
  std::atomic<std::uint64_t> bytes_read{0};

 private:
  static std::string path_of(int file) {
    return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file)).string();
  }
  int error_of(const char* call, const std::string& path) const {
    const std::lock_guard lock(mutex_);
    return failing_call == call && path.find(failing_path) != path.npos ? error : 0;
  }

  mutable std::mutex mutex_;
};

void flip_bit(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char found = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(found ^ 4));
}

}  // namespace

TEST_CASE("a state is loaded on any number of ranks, as it was saved on any other") {
  for (const int from : {1, 2, 3, 5, 7, 8}) {
    const scratch_directory folder;
    save_all(folder.path() + "/saved", from, {5, 7});
    for (const int to : {1, 2, 3, 5, 7, 8}) {
      CAPTURE(from, to);
      CHECK(check_load(folder.path() + "/saved", to, 7).empty());
    }
  }
}

TEST_CASE("tensors are saved by their placement, and loaded with another one") {
  using hocket::extents, hocket::on, hocket::replicated;
  const scratch_directory folder;
  const auto value = [](const auto& at) { return static_cast<float>(at[0] * 100 + at[1]); };
  on_ranks(4, [&](thread_rank& me) {
    const auto ranks = hocket::mesh<"dp", "tp">(me.comm(), {2, 2});
    using mesh_type = std::remove_cvref_t<decltype(ranks)>;
    hocket::tensor<float, extents<9, 50>, mesh_type, on<"tp", hocket::shard<0>>, on<"dp", replicated>> weight(ranks);
    hocket::fill(weight, value);
    state now;
    now.add("weight", weight);
    store(folder.path(), me.comm()).save(1, now);
  });
  on_ranks(3, [&](thread_rank& me) {
    const auto ranks = hocket::mesh<"tp">(me.comm(), {3});
    using mesh_type = std::remove_cvref_t<decltype(ranks)>;
    hocket::tensor<float, extents<9, 50>, mesh_type, on<"tp", hocket::shard<1>>> weight(ranks), expected(ranks);
    hocket::fill(expected, value);
    state now;
    now.add("weight", weight);
    me.check(store(folder.path(), me.comm()).load_newest(now).has_value(), "there is a checkpoint");
    me.check(std::ranges::equal(weight.elements(), expected.elements()), "the elements");
  });
}

template <class Elements>
concept can_be_added = requires(state to, Elements&& elements) { to.add("w", std::forward<Elements>(elements)); };
template <class Elements>
concept part_can_be_added = requires(state to, Elements&& elements) {
  to.add("w", sizes_type{4}, rectangle{{0}, {4}}, std::forward<Elements>(elements));
};
static_assert(can_be_added<std::vector<float>&> && part_can_be_added<std::vector<float>&>);
static_assert(can_be_added<std::span<float>> && part_can_be_added<std::span<float>>);
static_assert(!can_be_added<std::vector<float>> && !part_can_be_added<std::vector<float>>, "its elements would end");

TEST_CASE("without a checkpoint, nothing is loaded") {
  const scratch_directory folder;
  check_load(folder.path(), 2, 0);
  check_load(folder.path() + "/none", 2, 0);
}

/// Elements of a matrix and of many small tensors, of which ranks load rows, columns or all.
class large_state {
 public:
  static constexpr std::uint64_t rows = 1500, columns = 2050, small = 3, small_elements = 700;

  /// The rectangle that a rank holds of the matrix, if ranks divide it in this direction.
  static rectangle part_of(const thread_rank& me, const char* direction) {
    const auto r = static_cast<std::uint64_t>(me.rank()), p = static_cast<std::uint64_t>(me.size());
    const std::string how = direction;
    if (how == "rows") return {{rows * r / p, 0}, {rows * (r + 1) / p - rows * r / p, columns}};
    if (how == "columns") return {{0, columns * r / p}, {rows, columns * (r + 1) / p - columns * r / p}};
    if (how == "some rows") return {{400, 0}, {600 + r, columns}};
    return whole_of({rows, columns});
  }

  large_state(const thread_rank& me, const char* direction, bool is_filled) : where_(part_of(me, direction)) {
    matrix_.resize(where_.volume());
    if (is_filled) fill();
    now.add("matrix", {rows, columns}, where_, matrix_);
    for (std::uint64_t i = 0; i < small; ++i) {
      small_.emplace_back(small_elements, is_filled ? static_cast<std::uint32_t>(i) : 99);
      now.add("small " + std::to_string(i), small_.back());
    }
  }

  bool is_right() const {
    std::size_t i = 0;
    sizes_type at = where_.begin;
    do {
      if (matrix_[i++] != value_at(at)) return false;
    } while (hocket::checkpoint::detail::advance(at, where_, 2));
    for (std::size_t k = 0; k < small; ++k) {
      if (small_[k] != std::vector<std::uint32_t>(small_elements, static_cast<std::uint32_t>(k))) return false;
    }
    return true;
  }

  state now;

 private:
  static std::uint32_t value_at(const sizes_type& at) { return static_cast<std::uint32_t>(at[0] * columns + at[1]); }
  void fill() {
    std::size_t i = 0;
    sizes_type at = where_.begin;
    do matrix_[i++] = value_at(at);
    while (hocket::checkpoint::detail::advance(at, where_, 2));
  }

  rectangle where_;
  std::vector<std::uint32_t> matrix_;
  std::deque<std::vector<std::uint32_t>> small_;
};

/// Bytes of the blocks of 4096 bytes of all files with elements that a rank of the host needs.
std::uint64_t bytes_of_blocks(const std::string& checkpoint, const std::vector<rectangle>& of_matrix) {
  manifest found;
  REQUIRE(read_manifest(read_file(checkpoint + "/manifest.json"), found) == "");
  std::set<std::pair<std::size_t, std::uint64_t>> blocks;  // by file
  for (const tensor_description& tensor : found.tensors) {
    const std::vector<rectangle> whole{whole_of(tensor.extents)};
    for (const stored_part& part : tensor.parts) {
      for (const rectangle& needed : tensor.name == "matrix" ? of_matrix : whole) {
        const rectangle region = intersection(part.where, needed);
        for_each_run(region, part.where, part.where, [&](const sizes_type& at, std::uint64_t run) {
          const std::uint64_t begin = part.at + hocket::checkpoint::detail::offset_in(part.where, at) * 4;
          for (std::uint64_t i = begin / 4096; i * 4096 < begin + run * 4; ++i) blocks.emplace(part.shard, i);
        });
      }
    }
  }
  return blocks.size() * 4096;
}

TEST_CASE("ranks of a host read the blocks that they need, and hardly more") {
  const scratch_directory folder;
  watched_files files;
  on_ranks(4, [&](thread_rank& me) {
    large_state written(me, "rows", true);
    store(folder.path(), me.comm()).save(1, written.now);
  });
  for (const int ranks : {1, 2, 3, 8}) {
    for (const char* const direction : {"rows", "columns", "some rows", "all"}) {
      INFO(ranks << " ranks, " << direction);
      std::vector<rectangle> needed(static_cast<std::size_t>(ranks));
      files.bytes_read = 0;
      on_ranks(ranks, [&](thread_rank& me) {
        large_state read(me, direction, false);
        needed[static_cast<std::size_t>(me.rank())] = large_state::part_of(me, direction);
        store(folder.path(), me.comm(), {.files = &files}).load_newest(read.now);
        me.check(read.is_right(), "the elements");
      });
      const auto least = static_cast<double>(bytes_of_blocks(folder.path() + "/step-1.0.1", needed));
      const auto manifest_bytes = static_cast<double>(read_file(folder.path() + "/step-1.0.1/manifest.json").size());
      CHECK(static_cast<double>(files.bytes_read) - manifest_bytes <= 1.05 * least);
      CHECK(static_cast<double>(files.bytes_read) >= least * 0.99);  // the end of a file is no whole block
    }
  }
}

TEST_CASE("short writes and reads are continued") {
  const scratch_directory folder;
  watched_files files;
  files.short_reads = true;
  save_all(folder.path(), 2, {3}, {.files = &files});
  CHECK(check_load(folder.path(), 3, 3, {.files = &files}).empty());
}

TEST_CASE("the last checkpoints and those of every m-th step are kept") {
  const scratch_directory folder;
  save_all(folder.path(), 2, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {.keep = {.last = 2, .every = 4}});
  CHECK(folder.names() == std::vector<std::string>{"latest", "lock", "step-4.0.1", "step-8.0.1", "step-9.0.1"});
  CHECK(read_file(folder.path() + "/latest") == "step-9.0.1\n");
}

TEST_CASE("a checkpoint that is damaged does not count among those that are kept") {
  const scratch_directory folder;
  const store_options options{.keep = {.last = 2}};
  save_all(folder.path(), 2, {1, 2, 3}, options);
  flip_bit(folder.path() + "/step-3.0.1/shard-1-of-2.safetensors", 60'000);
  on_ranks(2, [&](thread_rank& me) {
    sample found(me, 9);
    store saved(folder.path(), me.comm(), options);
    me.check(saved.load_newest(found.now)->at == position{0, 2, 1}, "step 2 is loaded");
    saved.save(3, sample(me, 4).now);
  });
  flip_bit(folder.path() + "/step-3.1.1/shard-1-of-2.safetensors", 60'000);
  CHECK(check_load(folder.path(), 2, 2).size() == 2);
  save_all(folder.path(), 2, {5, 6}, options);  // which has refused none
  CHECK(folder.names() == std::vector<std::string>{"latest", "lock", "step-1.2.1", "step-2.2.1"});
}

TEST_CASE("a damaged checkpoint is refused with the reason, and the one before is loaded") {
  struct damage {
    const char* name;
    std::function<void(const std::string& checkpoint)> happens;
    const char* stated;
  };
  const damage damages[] = {
      {"a flipped bit in the elements", [](const auto& in) { flip_bit(in + "/shard-1-of-2.safetensors", 60'000); },
       "shard-1-of-2.safetensors' is damaged: a block of 4096 bytes at byte "},
      {"a shard is missing", [](const auto& in) { std::filesystem::remove(in + "/shard-0-of-2.safetensors"); },
       "shard-0-of-2.safetensors' at byte 0: No such file"},
      {"a shard is truncated",
       [](const auto& in) { std::filesystem::resize_file(in + "/shard-0-of-2.safetensors", 5000); },
       "shard-0-of-2.safetensors' has 5000 bytes instead of "},
      {"a flipped bit in the manifest", [](const auto& in) { flip_bit(in + "/manifest.json", 100); },
       "manifest.json': a byte before byte "},
      {"a truncated manifest", [](const auto& in) { std::filesystem::resize_file(in + "/manifest.json", 300); },
       "manifest.json': it ends after 300 bytes without its checksum"},
      {"an empty manifest", [](const auto& in) { std::filesystem::resize_file(in + "/manifest.json", 0); },
       "manifest.json': it ends after 0 bytes"},
      {"a folder instead of the manifest",
       [](const auto& in) {
         std::filesystem::remove(in + "/manifest.json");
         std::filesystem::create_directory(in + "/manifest.json");
       },
       "manifest.json' at byte 0: Is a directory"},
      {"a link in a circle instead of the manifest",
       [](const auto& in) {
         std::filesystem::remove(in + "/manifest.json");
         std::filesystem::create_symlink("manifest.json", in + "/manifest.json");
       },
       "manifest.json' at byte 0: Too many levels of symbolic links"},
  };
  for (const damage& each : damages) {
    INFO(each.name);
    const scratch_directory folder;
    save_all(folder.path(), 2, {4, 5});
    each.happens(folder.path() + "/step-2.0.1");
    const auto refused = check_load(folder.path(), 3, 4);
    REQUIRE(refused.size() == 1);
    INFO(refused[0]);
    CHECK(contains(refused[0], "step-2.0.1"));
    CHECK(contains(refused[0], each.stated));
    each.happens(folder.path() + "/step-1.0.1");
    const std::string all = error_on(2, errc::corrupted, [&](thread_rank& me) {
      sample found(me, 1);
      store(folder.path(), me.comm()).load_newest(found.now);
    });
    CHECK(contains(all, "all checkpoints are damaged"));
    CHECK(contains(all, "step-1.0.1"));
  }
}

TEST_CASE("what only has the name of a checkpoint is none, and neither loading nor saving fails for it") {
  const scratch_directory folder;
  save_all(folder.path(), 2, {4});
  folder.write("step-9.0.1", "a file");
  std::filesystem::create_symlink("/nowhere/step-8.0.1", folder.path() + "/step-8.0.1");
  std::filesystem::create_directory(folder.path() + "/step-7.0.1");
  CHECK(check_load(folder.path(), 3, 4).empty());
  on_ranks(2, [&](thread_rank& me) {
    store saved(folder.path(), me.comm());
    me.check(saved.save(2, sample(me, 5).now) == position{0, 2, 1}, "the position");
    const auto remaining = saved.not_removed();
    if (me.rank() != 0) return;
    me.check(remaining.size() == 2 && contains(remaining[0], "step-9.0.1': Not a directory"), "what remains");
    me.check(remaining.size() == 2 && contains(remaining[1], "step-8.0.1': Not a directory"), "what remains");
  });
  CHECK(check_load(folder.path(), 3, 5).empty());
  CHECK(std::filesystem::exists(folder.path() + "/step-9.0.1"));
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/step-7.0.1"));
}

/// Calls `act` once, before a file with this end of its path is opened.
class interrupted_files : public file_system {
 public:
  interrupted_files(std::string at, std::function<void()> act) : at_(std::move(at)), act_(std::move(act)) {}
  int open(const std::string& path, hocket::platform::file_use how,
           hocket::platform::file_descriptor& result) override {
    if (act_ && path.ends_with(at_)) std::exchange(act_, nullptr)();
    return file_system::open(path, how, result);
  }

 private:
  std::string at_;
  std::function<void()> act_;
};

TEST_CASE("a checkpoint that is removed while it is loaded is replaced by the one that has followed") {
  for (const char* const at : {"step-1.0.1/manifest.json", "step-1.0.1/shard-0-of-1.safetensors"}) {
    CAPTURE(at);
    const scratch_directory folder;
    save_all(folder.path(), 1, {4});
    interrupted_files files(at, [&] { save_all(folder.path(), 1, {5, 6}, {.keep = {.last = 1}}); });
    check_load(folder.path(), 1, 6, {.files = &files});
  }
}

TEST_CASE("two stores that save in one folder are refused, and the error names who holds it") {
  const scratch_directory folder;
  on_ranks(2, [&](thread_rank& me) {
    sample now(me, 4);
    store first(folder.path(), me.comm()), second(folder.path(), me.comm());
    first.save(1, now.now);
    std::string reason;
    try {
      second.save(2, now.now);
    } catch (const hocket::error& cause) {
      me.check(cause.code() == errc::system, "the code");
      reason = cause.cause().reason;
    }
    me.check(contains(reason, "another process saves in '" + folder.path() + "': process "), "the folder");
    me.check(contains(reason, std::to_string(::getpid()) + " on host "), "the process");
    me.check(second.load_newest(now.now).has_value(), "loading needs no lock");
    first.save(2, now.now);
  });
  CHECK(folder.names() == std::vector<std::string>{"latest", "lock", "step-1.0.1", "step-2.0.1"});
  save_all(folder.path(), 2, {5});  // the lock ends with the store
}

TEST_CASE("on a file system without locks, saving works") {
  struct files_without_locks : file_system {
    int lock(const std::string&, hocket::platform::file_descriptor&) override { return ENOLCK; }
  } files;
  const scratch_directory folder;
  save_all(folder.path(), 2, {4, 5}, {.files = &files});
  CHECK(check_load(folder.path(), 2, 5).empty());
}

TEST_CASE("a save that fails leaves no files, so that the next one has room") {
  const scratch_directory folder;
  watched_files files;
  on_ranks(2, [&](thread_rank& me) {
    store saved(folder.path(), me.comm(), {.files = &files});
    saved.save(1, sample(me, 4).now);
    hocket::barrier(me.comm());
    for (const char* const call : {"write", "sync", "rename"}) {
      if (me.rank() == 0) files.let_fail(call, ENOSPC);
      hocket::barrier(me.comm());
      bool has_failed = false;
      try {
        saved.save(2, sample(me, 5).now);
      } catch (const hocket::error&) {
        has_failed = true;
      }
      me.check(has_failed, call);
      me.check(!std::filesystem::exists(folder.path() + "/step-2.0.1"), "the files");
      hocket::barrier(me.comm());
    }
    if (me.rank() == 0) files.let_fail("none", 0);
    hocket::barrier(me.comm());
    saved.save(2, sample(me, 6).now);
  });
  CHECK(check_load(folder.path(), 3, 6).empty());
}

TEST_CASE("an old checkpoint that can't be removed is reported, and every save works") {
  const scratch_directory folder;
  on_ranks(2, [&](thread_rank& me) {
    store saved(folder.path(), me.comm(), {.keep = {.last = 1}});
    saved.save(1, sample(me, 1).now);
    if (me.rank() == 0) std::filesystem::create_directory(folder.path() + "/step-1.0.1/notes");
    for (std::uint32_t step = 2; step < 5; ++step) {
      saved.save(step, sample(me, step).now);
      const auto remaining = saved.not_removed();
      me.check(remaining.size() == (me.rank() == 0 ? 1U : 0U), "one remains");
      if (!remaining.empty()) me.check(contains(remaining[0], "step-1.0.1/notes"), remaining[0]);
    }
  });
  CHECK(check_load(folder.path(), 2, 4).empty());
  CHECK(folder.names() == std::vector<std::string>{"latest", "lock", "step-1.0.1", "step-4.0.1"});
}

TEST_CASE("after the last epoch or attempt that there is, a save is refused") {
  const scratch_directory folder;
  const auto error_of_step = [&](std::uint64_t step) {
    return error_on(2, errc::invalid_argument,
                    [&](thread_rank& me) { store(folder.path(), me.comm()).save(step, sample(me, 5).now); });
  };
  save_all(folder.path(), 1, {4});
  folder.write("step-9.0.18446744073709551615", "a file, which is not removed");
  CHECK(contains(error_of_step(9), "has the last attempt that there is: save to another folder"));
  std::filesystem::rename(folder.path() + "/step-1.0.1", folder.path() + "/step-5.18446744073709551615.1");
  CHECK(contains(error_of_step(4), "has the last epoch that there is: save to another folder"));
}

TEST_CASE("a text that is not UTF-8 is refused on all ranks") {
  const scratch_directory folder;
  for (const auto& [key, value] : {std::pair("k", "\xff"), std::pair("\xff", "v")}) {
    const std::string text = error_on(2, errc::invalid_argument, [&, k = key, v = value](thread_rank& me) {
      state now;
      now.text[k] = v;
      store(folder.path(), me.comm()).save(1, now);
    });
    CHECK(contains(text, "is not UTF-8"));
  }
}

TEST_CASE("an exception that is not hocket's, in the thread of an asynchronous save, is its failure") {
  struct files_without_memory : file_system {
    int rename_to_new(const std::string&, const std::string&) override { throw std::bad_alloc(); }
  } files;
  const scratch_directory folder;
  const std::string text = error_on(2, errc::out_of_memory, [&](thread_rank& me) {
    store saved(folder.path(), me.comm(), {.files = &files});
    sample now(me, 5);
    saved.save_async(9, now.now);
    saved.wait();
  });
  CHECK(contains(text, "there is no memory"));
}

/// Lets the host of each rank but the first have a folder of its own.
class unshared_files : public file_system {
 public:
  unshared_files(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  int open(const std::string& path, hocket::platform::file_use how,
           hocket::platform::file_descriptor& result) override {
    return file_system::open(path.starts_with(from_) ? to_ + path.substr(from_.size()) : path, how, result);
  }

 private:
  std::string from_, to_;
};

TEST_CASE("a folder that another host does not have is an error that names both hosts") {
  const scratch_directory folder, other;
  const std::string text = error_on(2, errc::system, [&](thread_rank& me) {
    unshared_files files(folder.path(), me.rank() == 0 ? folder.path() : other.path());
    store(folder.path(), me.comm(), {.files = &files}).save(1, sample(me, 4).now);
  });
  INFO(text);
  CHECK(contains(text, "rank 0 on host "));
  CHECK(contains(text, "has made the folder '" + folder.path() + "/step-1.0.1', but rank 1 on host "));
  CHECK(contains(text, "must be one that all hosts share"));
}

/// Counts the descriptors of this process that are open.
class counted_files : public file_system {
 public:
  int read(int file, std::span<std::byte> bytes, std::uint64_t offset, std::size_t& count) override {
    const std::filesystem::directory_iterator opened("/proc/self/fd"), end;
    most_open = std::max(most_open, static_cast<std::size_t>(std::distance(opened, end)));
    return file_system::read(file, bytes, offset, count);
  }

  std::size_t most_open = 0;
};

TEST_CASE("a reader of many files has few of them open") {
  const scratch_directory folder;
  file_system files;
  manifest all;
  constexpr std::uint64_t shards = 200;
  std::vector<std::uint32_t> elements(shards);
  hocket::checkpoint::detail::write_buffers buffers;
  write_rate rate;
  for (std::uint64_t i = 0; i < shards; ++i) {
    elements[i] = static_cast<std::uint32_t>(i * i);
    const state_part held{"w", element_type::u32, {shards}, {{i}, {1}}};
    const std::vector<source_part> parts{{&held, held.where, std::as_bytes(std::span(&elements[i], 1))}};
    manifest one;
    REQUIRE_FALSE(write_shard(files, folder.path(), "shard " + std::to_string(i), parts, rate, buffers, one));
    one.tensors[0].parts[0].shard = i;
    all.shards.push_back(one.shards[0]);
    if (i == 0) all.tensors = one.tensors;
    else all.tensors[0].parts.push_back(one.tensors[0].parts[0]);
  }
  counted_files counted;
  const std::filesystem::directory_iterator opened("/proc/self/fd"), end;
  const auto before = static_cast<std::size_t>(std::distance(opened, end));
  CHECK(verify(counted, folder.path(), all).message() == hocket::failure().message());
  CHECK(counted.most_open <= before + 70);
}

TEST_CASE("after a rollback, new checkpoints are newer than the damaged one, and no file of it is changed") {
  const scratch_directory folder;
  save_all(folder.path(), 2, {4, 5, 6});
  flip_bit(folder.path() + "/step-3.0.1/shard-1-of-2.safetensors", 60'000);
  on_ranks(2, [&](thread_rank& me) {
    sample found(me, 1);
    store saved(folder.path(), me.comm());
    me.check(saved.load_newest(found.now)->at == position{0, 2, 1}, "step 2 is loaded");
    me.check(saved.save(3, sample(me, 9).now) == position{1, 3, 1}, "another epoch");
  });
  CHECK(check_load(folder.path(), 3, 9).empty());
}

TEST_CASE("whatever was loaded, a new checkpoint is the newest") {
  const scratch_directory folder;
  save_all(folder.path(), 2, {4, 5, 6});
  on_ranks(2, [&](thread_rank& me) {
    sample found(me, 1);
    store saved(folder.path(), me.comm());
    saved.load({0, 1, 1}, found.now);
    me.check(found.all() == sample(me, 4).all(), "step 1 differs");
    me.check(saved.save(2, sample(me, 7).now) == position{1, 2, 1}, "a new epoch");
    me.check(saved.save(4, sample(me, 8).now) == position{1, 4, 1}, "the same epoch");
  });
  // A training that begins again in the same folder.
  on_ranks(2, [&](thread_rank& me) {
    const position at = store(folder.path(), me.comm(), {.keep = {.last = 2}}).save(1, sample(me, 9).now);
    me.check(at == position{2, 1, 1}, "a new epoch");
  });
  CHECK(check_load(folder.path(), 3, 9).empty());
  CHECK(folder.names() == std::vector<std::string>{"latest", "lock", "step-1.2.1", "step-4.1.1"});
}

TEST_CASE("the error of a damaged checkpoint that is loaded by its position names it alone") {
  const scratch_directory folder;
  save_all(folder.path(), 2, {4, 5});
  flip_bit(folder.path() + "/step-2.0.1/manifest.json", 100);
  const std::string text = error_on(2, errc::corrupted, [&](thread_rank& me) {
    sample found(me, 1);
    store(folder.path(), me.comm()).load({0, 2, 1}, found.now);
  });
  CHECK(contains(text, "step-2.0.1"));
  CHECK_FALSE(contains(text, "all checkpoints"));
}

TEST_CASE("errors of the system name the call, the file and the reason, and earlier checkpoints remain") {
  struct cause {
    const char* call;
    const char* path;
    int error;
    const char* stated;
  };
  const cause causes[] = {
      {"write", "", ENOSPC, "No space left on device"},
      {"sync", "shard-1", EIO, "Input/output error"},
      {"sync", "step-2.0.1", EIO, "Input/output error"},
      {"open", "shard-1", EACCES, "shard-1-of-2.safetensors'"},
      {"open", "manifest.new", EROFS, "Read-only file system"},
      {"write", "manifest.new", EIO, "manifest.new' at byte 0: Input/output error"},
      {"sync", "manifest.new", EIO, "manifest.new': Input/output error"},
      {"make_folder", "step-2", EROFS, "can't make the folder"},
      {"rename", "manifest.json", EIO, "can't rename"},
  };
  for (const cause& each : causes) {
    CAPTURE(each.call, each.path);
    const scratch_directory folder;
    save_all(folder.path(), 2, {4});
    watched_files files;
    files.failing_call = each.call;
    files.failing_path = each.path;
    files.error = each.error;
    const std::string text = error_on(2, errc::system, [&](thread_rank& me) {
      store(folder.path(), me.comm(), {.files = &files}).save(2, sample(me, 5).now);
    });
    INFO(text);
    CHECK(contains(text, each.stated));
    CHECK(contains(text, folder.path() + "/step-2.0.1"));
    CHECK(check_load(folder.path(), 3, 4).empty());
    save_all(folder.path(), 2, {6, 7});  // which removes what is left
    CHECK(check_load(folder.path(), 3, 7).empty());
  }
}

TEST_CASE("where the newest checkpoint can't be read, the one before is loaded, and the reason is stated") {
  struct cause {
    const char* call;
    const char* path;
    const char* stated;
  };
  const cause causes[] = {
      {"open", "step-2.0.1/manifest.json", "can't open"}, {"size_of", "step-2.0.1/manifest.json", "can't open"},
      {"read", "step-2.0.1/manifest.json", "can't read"}, {"open", "step-2.0.1/shard-1", "can't open"},
      {"size_of", "step-2.0.1/shard-1", "can't open"},    {"read", "step-2.0.1/shard-1", "can't read"},
  };
  const scratch_directory folder;
  save_all(folder.path(), 2, {4, 5});
  for (const cause& each : causes) {
    CAPTURE(each.call, each.path);
    watched_files files;
    files.failing_call = each.call;
    files.failing_path = each.path;
    files.error = EIO;
    const auto refused = check_load(folder.path(), 3, 4, {.files = &files});
    REQUIRE(refused.size() == 1);
    INFO(refused[0]);
    CHECK(contains(refused[0], std::string(each.stated) + " '" + folder.path() + '/' + each.path));
    CHECK(contains(refused[0], " at byte "));
    CHECK(contains(refused[0], "Input/output error"));
  }
}

TEST_CASE("parts of one tensor may be added in any order, with others between them") {
  const scratch_directory folder;
  std::vector<std::uint32_t> values(10), other(4, 7);
  std::iota(values.begin(), values.end(), 0U);
  for (const int from : {1, 2}) {
    CAPTURE(from);
    on_ranks(from, [&](thread_rank& me) {
      std::vector<std::uint32_t> mine = values, also = other;
      state now;
      if (me.rank() == 0) now.add_slice("values", 10, 6, std::span(mine).subspan(6));
      now.add("other", also);
      if (me.rank() == 0) now.add_slice("values", 10, 0, std::span(mine).first(3));
      if (me.rank() + 1 == from) now.add_slice("values", 10, 3, std::span(mine).subspan(3, 3));
      store(folder.path(), me.comm()).save(1, now);
    });
    on_ranks(2, [&](thread_rank& me) {
      std::vector<std::uint32_t> found(10), also(4);
      state now;
      now.add_slice("values", 10, 5, std::span(found).subspan(5));
      now.add("other", also);
      now.add_slice("values", 10, 0, std::span(found).first(5));
      store(folder.path(), me.comm()).load_newest(now);
      me.check(found == values && also == other, "the elements");
    });
  }
}

TEST_CASE("files of another folder, to which a link with the name of a checkpoint leads, are not removed") {
  const scratch_directory folder, other;
  save_all(other.path(), 2, {4});
  std::filesystem::create_directory(other.path() + "/notes");
  other.write("notes/text", "of a person");
  const std::string linked = folder.path() + "/step-1.0.1", notes = folder.path() + "/step-9.0.1";
  std::filesystem::create_directory_symlink(other.path() + "/step-1.0.1", linked);
  std::filesystem::create_directory_symlink(other.path() + "/notes", notes);
  CHECK(check_load(folder.path(), 3, 4).empty());
  on_ranks(2, [&](thread_rank& me) {
    store saved(folder.path(), me.comm(), {.keep = {.last = 1}});
    for (std::uint32_t step = 2; step < 5; ++step) saved.save(step, sample(me, step).now);
    const auto remaining = saved.not_removed();
    if (me.rank() != 0) return;
    me.check(remaining.size() == 2 && contains(remaining[0], linked) && contains(remaining[1], notes), "what remains");
  });
  CHECK(check_load(folder.path(), 2, 4).empty());
  CHECK(check_load(other.path(), 2, 4).empty());
  CHECK(read_file(other.path() + "/notes/text") == "of a person");
}

TEST_CASE("a checkpoint of other tensors is refused, with both descriptions") {
  const scratch_directory folder;
  save_all(folder.path(), 2, {4});
  const auto error_with = [&](const auto& add) {
    return error_on(2, errc::mismatch, [&](thread_rank& me) {
      state wanted;
      std::vector<std::uint32_t> elements(30'001);
      add(wanted, elements);
      store(folder.path(), me.comm()).load_newest(wanted);
    });
  };
  CHECK(contains(error_with([](state& to, auto& e) { to.add("other", e); }), "the checkpoint has no tensor 'other'"));
  CHECK(contains(error_with([](state& to, auto& e) { to.add("copies", e); }),
                 "tensor 'copies' is U32 [0:30000] in the checkpoint, and U32 [0:30001] here"));
  CHECK(contains(error_with([](state& to, auto& e) { to.add("cube", std::span(e).first(45)); }),
                 "tensor 'cube' is U32 [0:5, 0:1, 0:9] in the checkpoint, and U32 [0:45] here"));
  CHECK(contains(error_with([](state& to, auto& e) {
                   to.add("number", {1, 1, 1}, whole_of({1, 1, 1}), std::span(e).first(1));
                 }),
                 "tensor 'number' is U64 [] in the checkpoint, and U32 [0:1, 0:1, 0:1] here"));
  const std::string of_one = error_on(3, errc::mismatch, [&](thread_rank& me) {
    std::vector<std::uint32_t> right(30'000);
    std::vector<std::uint64_t> wide(30'000);
    state wanted;
    if (me.rank() == 1) wanted.add("copies", wide);
    else wanted.add("copies", right);
    store(folder.path(), me.comm()).load_newest(wanted);
  });
  CHECK(contains(of_one, "rank 1: tensor 'copies' is U32 [0:30000] in the checkpoint, and U64 [0:30000] here"));
}

TEST_CASE("states that differ between ranks are refused on all ranks") {
  const scratch_directory folder;
  const std::string text = error_on(3, errc::mismatch, [&](thread_rank& me) {
    state now;
    now.text["a"] = me.rank() == 1 ? "x" : "y";
    store(folder.path(), me.comm()).save(1, now);
  });
  CHECK(contains(text, "rank 1 has other texts"));
  const std::string parts = error_on(2, errc::invalid_argument, [&](thread_rank& me) {
    std::vector<float> elements(static_cast<std::size_t>(3 + me.rank()));
    state now;
    now.add("a", elements);
    store(folder.path(), me.comm()).save(1, now);
  });
  CHECK(contains(parts, "rank 0 has F32 [0:3], and rank 1 has F32 [0:4]"));
}

TEST_CASE("a state may change from save to save") {
  const scratch_directory folder;
  on_ranks(3, [&](thread_rank& me) {
    store saved(folder.path(), me.comm());
    std::vector<float> first(100, 1), second(50, 2);
    state now;
    now.add("first", first);
    saved.save(1, now);
    if (me.rank() == 1) now.add("second", second);
    saved.save(2, now);
    std::vector<float> read(50);
    state wanted;
    wanted.add("second", read);
    saved.load_newest(wanted);
    me.check(read == second, "the elements");
  });
}

TEST_CASE("an asynchronous save has the state of its call, and its failure surfaces in the next call") {
  const scratch_directory folder;
  on_ranks(3, [&](thread_rank& me) {
    store saved(folder.path(), me.comm(), {.most_bytes_per_second = std::uint64_t{10} << 20});
    sample now(me, 3);
    const position at = saved.save_async(7, now.now);
    now.overwrite(me, 4);  // the save has its own copy
    me.check(saved.save_async(8, now.now).step == 8, "the next one");
    me.check(at == position{0, 7, 1}, "the position");
    saved.wait();
    me.check(saved.is_done(), "is done");
  });
  CHECK(check_load(folder.path(), 2, 4).empty());
  std::filesystem::remove_all(folder.path() + "/step-8.0.1");
  CHECK(check_load(folder.path(), 2, 3).empty());

  watched_files files;
  files.failing_call = "sync";
  files.failing_path = "shard";
  files.error = EIO;
  const auto fails_in = [&](const std::function<void(store&, sample&)>& next) {
    return error_on(2, errc::system, [&](thread_rank& me) {
      store saved(folder.path(), me.comm(), {.files = &files});
      sample now(me, 5);
      saved.save_async(9, now.now);
      next(saved, now);
    });
  };
  CHECK(contains(fails_in([](store& saved, sample&) { saved.wait(); }), "can't sync"));
  CHECK(contains(fails_in([](store& saved, sample& now) { saved.save_async(10, now.now); }), "can't sync"));
  CHECK(contains(fails_in([](store& saved, sample& now) { saved.save(10, now.now); }), "can't sync"));
  CHECK(contains(fails_in([](store& saved, sample& now) { saved.load_newest(now.now); }), "can't sync"));
}
