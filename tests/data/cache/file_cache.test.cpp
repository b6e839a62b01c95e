// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cache within one process: bytes, versions, bound and removal, threads, and every error.
#include "data/cache/local_source.hpp"
#include "support/catch.hpp"
#include "support/scratch.hpp"

#include <hocket/core/crc32c.hpp>
#include <hocket/core/error.hpp>
#include <hocket/data/cache/cache_metrics.hpp>
#include <hocket/data/cache/file_cache.hpp>
#include <hocket/data/indexed_dataset.hpp>
#include <hocket/data/npy_file.hpp>
#include <hocket/data/text_lines.hpp>
#include <hocket/data/token_file.hpp>
#include <hocket/observe/registry.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using namespace cache_test;
using hocket::errc;
using hocket::data::cache_options;
using hocket::data::cached_name;
using hocket::data::file_cache;
using hocket::data::opened_file;
namespace fs = std::filesystem;

/// Files of any name, all with one length and version, whose bytes are the last letter of their names.
class lettered_source final : public hocket::data::remote_source {
 public:
  std::uint64_t bytes = 10;
  std::string version = "1";
  bool has_names = true;
  std::uint64_t reads = 0;
  std::uint64_t good_reads = ~std::uint64_t{0};  ///< further ones fail

  failure describe(const std::string& name, remote_file& result) override {
    result = {has_names ? name : "", bytes, version, {}};
    return {};
  }
  failure read(const remote_file& file, std::uint64_t, std::span<std::byte> into) override {
    if (reads == good_reads) return hocket::make_failure(errc::unreachable, "the network is down");
    ++reads;
    std::fill(into.begin(), into.end(), static_cast<std::byte>(file.name.back()));
    return {};
  }
};

/// Lets this process open `free` files more, as long as the object exists.
class few_descriptors {
 public:
  explicit few_descriptors(std::size_t free) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::dup(STDIN_FILENO);
    ::close(lowest);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(lowest) + free;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  few_descriptors(const few_descriptors&) = delete;
  few_descriptors& operator=(const few_descriptors&) = delete;
  ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

constexpr std::size_t shard_bytes = 10'000, piece = 3000;
const cache_options three_files{.bytes = 3 * shard_bytes, .piece_bytes = piece, .timeout = 200ms, .on_piece = {}};

/// Returns the names of whole files, without the hash.
std::vector<std::string> cached_files(const std::string& folder) {
  std::vector<std::string> result;
  for (const auto& each : fs::directory_iterator(folder)) {
    const std::string name = each.path().filename().string();
    if (hocket::data::is_cached_name(name)) result.push_back(name.substr(0, name.rfind('-')));
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// Returns the error that `body` raises, as "code: reason"; empty if it raises none.
std::string raised_by(errc code, const std::function<void()>& body) {
  try {
    body();
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == make_error_code(code));
    return cause.reason();
  }
  return "";
}

}  // namespace

TEST_CASE("a cached file has the bytes of the remote one, and is read once") {
  storage files(0, 0);
  const auto [bytes, piece_bytes] = GENERATE(table<std::size_t, std::size_t>(
      {{0, 7}, {1, 1}, {1, 4096}, {4095, 4096}, {4096, 4096}, {4097, 4096}, {100'001, 1000}, {65'536, 1 << 20}}));
  const bool has_checksum = GENERATE(false, true);
  files.write("a", content("a", bytes));
  std::vector<std::uint64_t> written;
  file_cache cache(files.folder(), files.source,
                   {.bytes = 200'000, .piece_bytes = piece_bytes, .on_piece = [&](const remote_file&, std::uint64_t n) {
                      written.push_back(n);
                    }});
  remote_file file = cache.describe("a");
  const std::string expected = content("a", bytes);
  if (has_checksum) file.crc32c = hocket::crc32c().add(std::as_bytes(std::span(expected))).value();
  for (int i = 0; i < 2; ++i) {
    const opened_file opened = cache.open(file);
    CHECK(text_of(opened) == expected);
    CHECK(opened.name() == "a");
  }
  CHECK(files.source.bytes_read()["a"] == bytes);
  CHECK(written.size() == (bytes + piece_bytes - 1) / piece_bytes);
  CHECK(cached_files(files.folder()) == std::vector<std::string>{"a"});
  CHECK(cache.bytes_in_use() == bytes);
}

TEST_CASE("what a cache downloads, finds and removes is counted, and shown as metrics") {
  hocket::observe::registry metrics;
  const auto shown = [&] {
    std::vector<std::pair<std::string, double>> result;
    for (const auto& each : metrics.read()) result.emplace_back(each.name, each.samples.at(0).value);
    return result;
  };
  const auto expected = [](double downloads, double bytes, double evictions, double evicted, double hits) {
    return std::vector<std::pair<std::string, double>>{{"hocket_cache_downloaded_bytes", bytes},
                                                       {"hocket_cache_downloads", downloads},
                                                       {"hocket_cache_evicted_bytes", evicted},
                                                       {"hocket_cache_evictions", evictions},
                                                       {"hocket_cache_hits", hits}};
  };
  storage files(5, shard_bytes);
  {
    file_cache cache(files.folder(), files.source, three_files), other(files.folder(), files.source, three_files);
    hocket::observe::watch(metrics, cache);
    hocket::observe::watch(metrics, other);
    CHECK(shown() == expected(0, 0, 0, 0, 0));
    for (const char* const name : {"0", "1", "2"}) cache.open(name);
    CHECK(shown() == expected(3, 3 * shard_bytes, 0, 0, 0));
    other.open("0");
    cache.open("1");
    CHECK(shown() == expected(3, 3 * shard_bytes, 0, 0, 2));
    other.open("3");
    CHECK(shown() == expected(4, 4 * shard_bytes, 1, shard_bytes, 2));
    files.source.before_read = [](const remote_file&, std::uint64_t offset) {
      return offset < 2 * piece ? failure() : hocket::make_failure(errc::unreachable, "the network is down");
    };
    CHECK_THROWS(cache.open("4"));
    CHECK(shown() == expected(4, 4 * shard_bytes + 2 * piece, 2, 2 * shard_bytes, 2));
  }
  CHECK(shown() == expected(4, 4 * shard_bytes + 2 * piece, 2, 2 * shard_bytes, 2));
}

TEST_CASE("sources read files of a cache as local ones") {
  storage files(0, 0);
  files.write("tokens", std::string("\1\0\2\0\3\0", 6));
  file_cache cache(files.folder(), files.source, {.bytes = 1000});
  const hocket::data::token_file tokens(cache.open("tokens"));
  hocket::data::token_samples::batch_type batch;
  tokens.samples(2).append(0, batch);
  CHECK(batch == std::vector<std::uint32_t>{1, 2, 3});

  files.write("lines", "a\nb");
  const hocket::data::text_lines lines(cache.open("lines"));
  CHECK(lines.line(1) == "b");

  const auto number = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
  files.write("set.idx", std::string("MMIDIDX\0\0", 9) + number(std::uint64_t{1}) + '\1' + number(std::uint64_t{1}) +
                             number(std::uint64_t{0}) + number(std::int32_t{2}) + number(std::int64_t{0}));
  files.write("set.bin", "\5\6");
  hocket::data::indexed_dataset::batch_type sequences;
  hocket::data::indexed_dataset(cache.open("set.idx"), cache.open("set.bin")).append(0, sequences);
  CHECK(sequences == hocket::data::indexed_dataset::batch_type{{5, 6}});

  const std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }\n";
  files.write("array.npy", "\x93NUMPY\1" + std::string(1, '\0') + number(static_cast<std::uint16_t>(header.size())) +
                               header + "\7\x08");
  CHECK(hocket::data::npy_file(cache.open("array.npy")).size() == 2);
}

TEST_CASE("the least recently used file is removed, and none that is open or needed") {
  storage files(5, shard_bytes);
  file_cache cache(files.folder(), files.source, three_files);
  for (const char* name : {"0", "1", "2"}) cache.open(name);
  cache.open("0");
  cache.open("3");  // "1" was used least recently
  CHECK(cached_files(files.folder()) == std::vector<std::string>{"0", "2", "3"});
  {
    const opened_file held = cache.open("2");
    cache.open("0");
    cache.open("3");
    cache.open("4");
    CHECK(cached_files(files.folder()) == std::vector<std::string>{"2", "3", "4"});
    cache.open(cache.describe("0"), {.find_needed = [&](const auto&, hocket::data::needed_names& needed) {
                 needed = {cached_name(cache.describe("3"))};
                 return failure();
               }});
    CHECK(cached_files(files.folder()) == std::vector<std::string>{"0", "2", "3"});
    CHECK(text_of(held) == files.source.content_of("2"));
  }
  CHECK(files.source.bytes_read()["2"] == shard_bytes);
}

TEST_CASE("a file is in use until its last copy is destroyed") {
  storage files(4, shard_bytes);
  file_cache cache(files.folder(), files.source, three_files);
  std::vector<opened_file> held;
  for (const char* name : {"0", "1", "2"}) held.push_back(cache.open(name));
  const opened_file copy = held[1];
  CHECK_THAT(raised_by(errc::timeout, [&] { cache.open("3"); }),
             Catch::Contains("there was no room for the 10000 bytes of '3' in '" + files.folder() +
                             "' for 0.2 s: 30000 "
                             "of 30000 bytes are in use"));
  held.erase(held.begin() + 1);
  CHECK(raised_by(errc::timeout, [&] { cache.open("3"); }) != "");
  held.pop_back();
  CHECK(text_of(cache.open("3")) == files.source.content_of("3"));
  CHECK(cached_files(files.folder()) == std::vector<std::string>{"0", "1", "3"});
}

TEST_CASE("a new version is another file, and the old one is removed as others are") {
  storage files(3, shard_bytes);
  file_cache before(files.folder(), files.source, three_files);
  const opened_file old = before.open("0");
  files.write("0", content("new", shard_bytes));
  files.write("0.version", "2");
  CHECK(text_of(before.open("0")) == text_of(old));  // an object uses one version
  file_cache after(files.folder(), files.source, three_files);
  CHECK(text_of(after.open("0")) == content("new", shard_bytes));
  CHECK(text_of(old) == content("0", shard_bytes));
  CHECK(cached_files(files.folder()) == std::vector<std::string>{"0", "0"});
}

TEST_CASE("a download continues with what was written, if the version is the same and stated") {
  struct sample {
    std::string name, version;
    std::function<void(const std::string& folder, const remote_file&)> between;
    std::uint64_t read_again;  // of the 6000 bytes before the failure
  };
  const auto rewritten = [](const std::string& what, const std::string& with) {
    return [=](const std::string& folder, const remote_file& file) {
      const std::string path = folder + '/' + cached_name(file) + ".partial.json";
      std::string text = hocket_test::read_file(path);
      text.replace(text.find(what), what.size(), with);
      std::ofstream(path) << text;
    };
  };
  const std::vector<sample> samples{
      {"nothing", "1", [](const std::string&, const remote_file&) {}, 0},
      {"no version", "", [](const std::string&, const remote_file&) {}, 6000},
      {"another boot", "1", rewritten("\"boot\":\"", "\"boot\":\"other"), 6000},
      {"another file", "1", rewritten("\"name\":\"", "\"name\":\"other"), 6000},
      {"no record", "1",
       [](const std::string& folder, const remote_file& file) {
         fs::remove(folder + '/' + cached_name(file) + ".partial.json");
       },
       6000},
      {"longer than the file", "1",
       [](const std::string& folder, const remote_file& file) {
         fs::resize_file(folder + '/' + cached_name(file) + ".partial", shard_bytes + 1);
       },
       6000},
      {"a piece cut by a kill", "1",
       [](const std::string& folder, const remote_file& file) {
         fs::resize_file(folder + '/' + cached_name(file) + ".partial", 4000);
       },
       2000},
  };
  for (const sample& each : samples) {
    INFO(each.name);
    storage files(1, shard_bytes);
    file_cache cache(files.folder(), files.source, three_files);
    remote_file file = cache.describe("0");
    file.version = each.version;
    const std::string expected = files.source.content_of("0");
    file.crc32c = hocket::crc32c().add(std::as_bytes(std::span(expected))).value();
    files.source.before_read = [](const remote_file&, std::uint64_t offset) {
      return offset < 6000 ? failure() : hocket::make_failure(errc::system, "the server is gone");
    };
    CHECK(raised_by(errc::system, [&] { cache.open(file); }) == "the server is gone");
    CHECK(cache.bytes_in_use() == shard_bytes);  // reserved
    each.between(files.folder(), file);
    files.source.before_read = nullptr;
    CHECK(text_of(cache.open(file)) == expected);
    CHECK(files.source.bytes_read()["0"] == shard_bytes + each.read_again);
    CHECK(cached_files(files.folder()) == std::vector<std::string>{"0"});
    CHECK(cache.bytes_in_use() == shard_bytes);
  }
}

TEST_CASE("partial downloads count, and are removed to make room") {
  storage files(3, shard_bytes);
  file_cache cache(files.folder(), files.source, {.bytes = 2 * shard_bytes, .piece_bytes = piece, .timeout = 200ms});
  files.source.before_read = [](const remote_file& file, std::uint64_t offset) {
    return file.name == "0" && offset > 0 ? hocket::make_failure(errc::system, "gone") : failure();
  };
  CHECK(raised_by(errc::system, [&] { cache.open("0"); }) == "gone");
  const opened_file held = cache.open("1");
  CHECK(cache.bytes_in_use() == 2 * shard_bytes);
  cache.open("2");
  CHECK(cache.bytes_in_use() == 2 * shard_bytes);
  for (const auto& each : fs::directory_iterator(files.folder()))
    CHECK(each.path().filename().string().find(".partial") == std::string::npos);
}

TEST_CASE("a wrong checksum is an error, and the download is not continued") {
  storage files(1, shard_bytes);
  file_cache cache(files.folder(), files.source, three_files);
  remote_file file = cache.describe("0");
  file.crc32c = 1;
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(
        raised_by(errc::corrupted, [&] { cache.open(file); }),
        Catch::Contains("'0', version '1', has the CRC-32C ") && Catch::Contains(" instead of 0000000000000001"));
  }
  CHECK(files.source.bytes_read()["0"] == 2 * shard_bytes);
  CHECK(cache.bytes_in_use() == 0);
}

TEST_CASE("a partial file that another program removes or replaces does not become a whole one") {
  storage files(1, shard_bytes);
  const bool replaces = GENERATE(false, true);
  std::string partial;
  cache_options options = three_files;
  options.on_piece = [&](const remote_file&, std::uint64_t written) {
    if (partial.empty() || written < shard_bytes) return;
    fs::remove(partial);
    if (replaces) std::ofstream(partial) << "other";
  };
  file_cache cache(files.folder(), files.source, options);
  const remote_file file = cache.describe("0");
  partial = files.folder() + '/' + cached_name(file) + ".partial";
  CHECK_THAT(raised_by(errc::system, [&] { cache.open(file); }),
             Catch::Contains(partial) && Catch::Contains("was removed or replaced while it was written"));
  CHECK(cached_files(files.folder()).empty());
  fs::remove(partial);
  partial.clear();
  CHECK(text_of(cache.open(file)) == files.source.content_of("0"));
}

TEST_CASE("threads that open the same files download each once") {
  storage files(4, shard_bytes);
  files.source.delay = 200us;
  file_cache cache(files.folder(), files.source, {.bytes = 4 * shard_bytes, .piece_bytes = 500});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (const std::string& name : files.names) {
        if (text_of(cache.open(name)) != content(name, shard_bytes)) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
  for (const std::string& name : files.names) CHECK(files.source.bytes_read()[name] == shard_bytes);
}

TEST_CASE("a thread that waits for a downloader learns that it stalls") {
  storage files(1, shard_bytes);
  file_cache cache(files.folder(), files.source, three_files);
  std::atomic<bool> reads{false}, may_end{false};
  files.source.before_read = [&](const remote_file&, std::uint64_t) {
    reads = true;
    while (!may_end) std::this_thread::sleep_for(1ms);
    return hocket::make_failure(errc::timeout, "the server has stalled");
  };
  std::string of_downloader;
  std::thread downloader([&] {
    hocket::data::opened_file result;
    of_downloader = cache.try_open(cache.describe("0"), {}, result).reason;
  });
  while (!reads) std::this_thread::sleep_for(1ms);
  CHECK_THAT(raised_by(errc::timeout, [&] { cache.open("0"); }),
             Catch::Contains("another process has '" + files.folder() + "/0-") &&
                 Catch::Contains(".partial' locked, and has written nothing for 0.2 s"));
  const std::atomic<bool> cancelled{true};
  CHECK(raised_by(errc::aborted, [&] { cache.open(cache.describe("0"), {.cancelled = &cancelled}); }) ==
        "the wait for '0' was cancelled");
  may_end = true;
  downloader.join();
  CHECK(of_downloader == "the server has stalled");
}

TEST_CASE("the room that the files in use need is checked before the first download") {
  storage files(3, shard_bytes);
  files.write("large", content("large", 2 * shard_bytes));
  file_cache cache(files.folder(), files.source, three_files);
  const auto described = cache.describe({"0", "large", "1", "2"});
  CHECK_NOTHROW(cache.require_room(described, 0));
  CHECK_NOTHROW(cache.require_room(described, 2));
  CHECK_THAT(raised_by(errc::invalid_argument, [&] { cache.require_room(described, 3); }),
             Catch::Contains("the bound of 30000 bytes for '" + files.folder() +
                             "' is too small: 3 files are used at a "
                             "time"));
  CHECK(raised_by(errc::invalid_argument, [&] { cache.require_room(described, UINT64_MAX); }) != "");
  file_cache small(files.folder(), files.source, {.bytes = shard_bytes - 1});
  CHECK_THAT(raised_by(errc::invalid_argument, [&] { small.open("0"); }),
             Catch::Contains("'0' has 10000 bytes, and the cache '" + files.folder() + "' is for at most 9999"));
  CHECK(files.source.bytes_read().empty());
  CHECK(raised_by(errc::invalid_argument, [&] { file_cache(files.folder(), files.source, {}); }) != "");
  CHECK(raised_by(errc::invalid_argument,
                  [&] { file_cache(files.folder(), files.source, {.bytes = 1, .piece_bytes = 0}); }) != "");
  CHECK_THAT(raised_by(errc::system, [&] { cache.open("none"); }), Catch::Contains("there is no file 'none'"));
}

TEST_CASE("a damaged or hostile file in the folder is an error that names it") {
  struct fault {
    std::string suffix;
    std::function<void(const std::string& path)> make;
    errc code;
    std::string expected;
  };
  const auto text = [](std::string content) {
    return [=](const std::string& path) { std::ofstream(path, std::ios::binary) << content; };
  };
  const auto folder = [](const std::string& path) { fs::create_directory(path); };
  const auto link = [](const std::string& path) { fs::create_symlink("/etc/passwd", path); };
  const std::string format = R"({"format":"hocket partial download",)";
  const std::vector<fault> faults{
      {"", text("short"), errc::corrupted, "has 5 bytes instead of the 10000 of '0': remove it"},
      {"", folder, errc::system, "it must be a regular file"},
      {"", link, errc::system, "it must be a regular file"},
      {".partial", folder, errc::system, "cannot open"},
      {".partial", link, errc::system, "cannot open"},
      {".partial.json", folder, errc::corrupted, "is damaged: it is a folder, not a regular file"},
      {".partial.json", text(""), errc::corrupted, "is damaged: it is empty: remove it"},
      {".partial.json", text("{"), errc::corrupted, "is damaged: byte 1: "},
      {".partial.json", text("{}"), errc::corrupted, "it is no record of a partial download"},
      {".partial.json", text(format + "\"bytes\":-1}"), errc::corrupted, "a whole number was expected"},
      {".partial.json", text(format + "\"bytes\":99999999999999999999}"), errc::corrupted, "a number up to "},
      {".partial.json", text(format + "\"name\":\"0\"}"), errc::corrupted, "it does not state the length"},
      {".partial.json", text(std::string((1 << 20) + 1, ' ')), errc::corrupted, "it has more than 1048576 bytes"},
  };
  for (const fault& each : faults) {
    INFO(each.suffix << ": " << each.expected);
    storage files(2, shard_bytes);
    file_cache cache(files.folder(), files.source, three_files);
    const std::string path = files.folder() + '/' + cached_name(cache.describe("0")) + each.suffix;
    each.make(path);
    if (each.suffix == ".partial.json") std::ofstream(path.substr(0, path.size() - 5)) << "x";
    CHECK_THAT(raised_by(each.code, [&] { cache.open("0"); }), Catch::Contains(path) && Catch::Contains(each.expected));
    if (each.suffix == ".partial.json") {  // the room that it reserves is unknown
      CHECK_THAT(raised_by(each.code, [&] { cache.open("1"); }), Catch::Contains(path));
    }
    CHECK(hocket_test::read_file("/etc/passwd") != "");
  }
}

TEST_CASE("records that reserve more than there can be do not break the bound") {
  storage files(1, shard_bytes);
  file_cache cache(files.folder(), files.source, three_files);
  for (int i = 0; i < 8; ++i) {
    const std::string path = files.folder() + "/x-000000000000000" + std::to_string(i) + ".partial";
    std::ofstream(path) << "x";
    std::ofstream(path + ".json") << R"({"format":"hocket partial download","bytes":4611686018427387904})";
  }
  CHECK_THAT(raised_by(errc::corrupted, [&] { cache.open("0"); }),
             Catch::Contains("the records in '" + files.folder() + "' state more than"));
}

TEST_CASE("files that the cache has not made are ignored") {
  storage files(1, shard_bytes);
  file_cache cache(files.folder(), files.source, {.bytes = shard_bytes});
  for (const char* name : {"notes", "x-0123", "x-0123456789abcdeF", "x-0123456789abcdef.other"})
    std::ofstream(files.folder() + '/' + name) << std::string(shard_bytes, 'x');
  CHECK(text_of(cache.open("0")) == files.source.content_of("0"));
  CHECK(fs::exists(files.folder() + "/notes"));
  CHECK(cache.bytes_in_use() == shard_bytes);
}

TEST_CASE("a folder that can't be made is an error that names it") {
  storage files(1, 1);
  std::ofstream(files.scratch() + "/file") << "x";
  CHECK_THAT(raised_by(errc::system, [&] { file_cache(files.scratch() + "/file/cache", files.source, {.bytes = 1}); }),
             Catch::Contains("cannot make the folder '" + files.scratch() + "/file/cache'"));
}

TEST_CASE("names in the folder show the file, and differ between names, versions and lengths") {
  const auto name = [](const std::string& url, std::uint64_t bytes = 1, const std::string& version = "1") {
    return cached_name({url, bytes, version, {}});
  };
  const auto readable = [&](const std::string& url) { return name(url).substr(0, name(url).rfind('-')); };
  CHECK(readable("https://example.org/data/shard-0007.tar?token=1/2#x") == "shard-0007.tar");
  CHECK(readable("s3://bucket/a b\n/") == "a_b_");
  CHECK(readable("..") == "_..");
  CHECK(readable("") == "_");
  CHECK(readable(std::string(500, 'a')) == std::string(80, 'a'));
  const std::vector<std::string> different{name("a/b"),         name("b/b"),        name("a/b", 2),
                                           name("a/b", 1, "2"), name("a/b", 1, ""), name("a/b?x")};
  for (const std::string& each : different) {
    CHECK(hocket::data::is_cached_name(each));
    CHECK(std::count(different.begin(), different.end(), each) == 1);
  }
}

TEST_CASE("a large file takes the room of more small files than a process may open") {
  const storage files(0, 0);
  lettered_source source;
  source.bytes = 1;
  file_cache cache(files.folder(), source, {.bytes = 200});
  for (int i = 0; i < 200; ++i) cache.open(std::to_string(i));
  source.bytes = 150;
  const few_descriptors limit(20);
  CHECK(text_of(cache.open("large x")) == std::string(150, 'x'));
  CHECK(cache.bytes_in_use() == 200);
}

TEST_CASE("however few files a process may still open, the bound holds, and the error states the cause") {
  const storage files(0, 0);
  lettered_source source;
  file_cache cache(files.folder(), source, {.bytes = 20, .piece_bytes = 4});
  cache.open("a");
  cache.open("b");
  std::size_t opened = 0;
  for (std::size_t free = 0; free < 10; ++free) {
    const std::string name(1, static_cast<char>('c' + free));
    const std::string problem = raised_by(errc::system, [&] {
      const few_descriptors limit(free);
      cache.open(name);
      ++opened;
    });
    if (!problem.empty()) CHECK_THAT(problem, Catch::StartsWith("cannot ") && Catch::EndsWith("Too many open files"));
    CHECK(cache.bytes_in_use() <= 20);
    CHECK(text_of(cache.open(name)) == std::string(10, name.front()));
  }
  CHECK(0 < opened);
  CHECK(opened < 10);
}

TEST_CASE("versions and names of any bytes are continued, or downloaded again") {
  for (const std::string& text :
       {std::string("a\0b", 3), std::string("x\ny"), std::string("\"\\\x01\x7f"), std::string("\xff\xfe"),
        std::string("gr\xc3\xb6\xc3\x9f"
                    "e"),
        std::string(4000, 'v')}) {
    const storage files(0, 0);
    lettered_source source;
    source.version = text;
    file_cache cache(files.folder() + "//", source, {.bytes = 20, .piece_bytes = 2});
    source.good_reads = 3;
    CHECK_THAT(raised_by(errc::unreachable, [&] { cache.open(text + 'n'); }), Catch::Contains("network"));
    CHECK(cache.bytes_in_use() == 10);
    source.good_reads = ~std::uint64_t{0};
    CHECK(text_of(cache.open(text + 'n')) == std::string(10, 'n'));
    CHECK(source.reads == (text.front() == '\xff' ? 8 : 5));  // no record has bytes that are no UTF-8
  }
}

TEST_CASE("files that can't be distinguished or recorded are refused, and others are not affected") {
  const storage files(0, 0);
  lettered_source source;
  file_cache cache(files.folder(), source, {.bytes = 20});
  source.has_names = false;
  CHECK_THAT(raised_by(errc::invalid_argument, [&] { cache.open("a"); }),
             Catch::Contains("describes 'a' without a name"));
  source.has_names = true;
  CHECK_THAT(raised_by(errc::invalid_argument, [&] { cache.open(std::string(1'100'000, 'x')); }),
             Catch::Contains("a name and a version of 1100000 and 1 bytes"));
  CHECK(text_of(cache.open("a")) == std::string(10, 'a'));
  CHECK(cache.bytes_in_use() == 10);
}
