// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of the directory store, written by other ranks or by any process with access to the directory. If the lowest
/// bit of the first byte is 0, the rest is the verdict of rank 0, as rank 1 reads it. Otherwise it contains the join
/// files of ranks 1 and 2, which rank 0 reads: the next byte is the length of the first one; bits 1 and 2 of the first
/// byte specify whether a valid hello precedes the bytes of each file.
#include "fuzz.hpp"

#include <hocket/bootstrap/directory_store.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using fuzz::require;
namespace detail = hocket::bootstrap::detail;
namespace files = std::filesystem;
namespace platform = hocket::platform;
using hocket::bootstrap::blob;
using hocket::bootstrap::byte_view;

constexpr int ranks = 3;

hocket::bootstrap::directory_store_options options_of(int rank, int of_ranks, const files::path& directory) {
  return {rank, of_ranks, directory.string(), "token"};
}

/// A directory that is removed at the end of the program.
class scratch {
 public:
  scratch() {
    std::string name = (files::temp_directory_path() / "hocket-fuzz-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "a temporary directory can be created");
    path_ = name;
    const hocket::bootstrap::directory_store alone(options_of(0, 1, path_), hocket::deadline());
    base_ = only_entry(path_);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { files::remove_all(path_); }

  const files::path& path() const noexcept { return path_; }
  /// The folder of the sessions of jobs with this token.
  const files::path& base() const noexcept { return base_; }
  void clear() const { files::remove_all(base_); }

  static files::path only_entry(const files::path& directory) {
    const auto names = platform::list_directory(directory.string());
    require(names.size() == 1, "the directory has one entry");
    return directory / names.front();
  }

 private:
  files::path path_;
  files::path base_;
};

const scratch& place() {
  static const scratch instance;
  return instance;
}

void write(const files::path& directory, const char* name, byte_view content) {
  require(!platform::write_file(directory.string(), name, content), "files can be written");
}

blob hello_of(int rank) {
  detail::hello greeting;
  greeting.rank = rank;
  greeting.ranks = ranks;
  greeting.token = "token";
  return detail::encode(greeting);
}

/// Opens the store. `others` simulates the other ranks: the store calls it in the predicate that cancels its wait,
/// which returns true after a few calls. Returns whether the rank was admitted.
template <class Others>
bool open_store(int rank, const Others& others) {
  int asked = 0;
  bool opened = false;
  const auto cancelled = [&] {
    others();
    return ++asked > 3;
  };
  fuzz::may_raise(ranks, [&] {
    const hocket::bootstrap::directory_store store(options_of(rank, ranks, place().path()),
                                                   {hocket::deadline::after(std::chrono::seconds(5)), cancelled});
    opened = true;
  });
  return opened;
}

void read_verdict(byte_view verdict) {
  const files::path session = place().base() / "session-0";
  files::create_directories(session);
  bool whole = true;
  const bool opened = open_store(1, [&] {
    blob note;
    if (!platform::read_file((session / "join.1").string(), note)) return;
    detail::hello greeting;
    std::size_t size = 0;
    whole = detail::decode(note, greeting, size) == detail::decoded::complete;
    if (!whole) return;
    write(session, "seen.1", byte_view(note).subspan(size));
    write(session, "verdict", verdict);
  });
  require(whole, "the join file of a rank begins with a complete hello");
  detail::blob_reader reader(verdict);
  const bool good = reader.integer<std::int32_t>() == 0 && reader.left() >= sizeof(std::int32_t);
  require(opened == good, "a rank is admitted if and only if the verdict is valid and good");
}

void read_notes(unsigned how, fuzz::input& in) {
  std::array<blob, 2> notes;
  if ((how & 2U) != 0) notes[0] = hello_of(1);
  if ((how & 4U) != 0) notes[1] = hello_of(2);
  detail::append_bytes(notes[0], in.piece(in.byte()));
  detail::append_bytes(notes[1], in.rest());
  const bool opened = open_store(0, [&] {
    const files::path session = scratch::only_entry(place().base());
    write(session, "join.1", notes[0]);
    write(session, "join.2", notes[1]);
  });
  require(!opened || !(notes[0].empty() || notes[1].empty()), "rank 0 waits for all ranks");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const unsigned how = in.byte();
  how % 2 == 0 ? read_verdict(in.rest()) : read_notes(how, in);
  place().clear();
  return 0;
}
