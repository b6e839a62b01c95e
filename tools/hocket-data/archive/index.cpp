// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Finds the files of a tar file through libarchive, and where their bytes are.
#include "../index.hpp"

#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/tar_index.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace data_tool {
namespace {

using hocket::data::indexed_file;
using hocket::data::tar_index;
using hocket::data::detail::named_bytes;
using hocket::detail::concat;

struct archive_end {
  void operator()(archive* which) const noexcept { archive_read_free(which); }
};

/// Returns why a name can't be that of a sample; empty if it can. Nothing is unpacked, but a tar file with such names
/// is damaged or made to do harm.
std::string problem_of_name(std::string_view name) {
  if (name.empty()) return "it has a file without a name";
  if (name.front() == '/') return concat({"'", name, "' is an absolute name"});
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (rest.substr(0, slash) == "..") return concat({"'", name, "' is a name outside of its folder"});
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return "";
}

class indexer {
 public:
  explicit indexer(const named_bytes& file) : file_(file), archive_(archive_read_new()) {
    if (!archive_) throw std::bad_alloc();
    archive_read_support_format_tar(archive_.get());
    if (archive_read_open_memory(archive_.get(), file.bytes.data(), file.bytes.size()) != ARCHIVE_OK) fail();
  }

  tar_index run() {
    result_.bytes = file_.bytes.size();
    archive_entry* entry = nullptr;
    for (;;) {
      const int outcome = archive_read_next_header(archive_.get(), &entry);
      if (outcome == ARCHIVE_EOF) return std::move(result_);
      if (outcome != ARCHIVE_OK) fail();
      add(entry);
    }
  }

 private:
  std::uint64_t position() const noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, archive_filter_bytes(archive_.get(), 0)));
  }
  [[noreturn]] void refuse(std::string_view reason) const { hocket::data::detail::refuse(file_, position(), reason); }
  [[noreturn]] void not_supported(std::string_view reason) const {
    hocket::data::detail::refuse(file_, position(), reason, hocket::errc::invalid_argument);
  }
  [[noreturn]] void fail() const {
    const char* const reason = archive_error_string(archive_.get());
    refuse(concat({"it is no whole tar file without compression: ", reason}));
  }

  void add(archive_entry* entry) {
    const char* const text = archive_entry_pathname(entry);
    const std::string name = text != nullptr ? text : "";
    if (const std::string problem = problem_of_name(name); !problem.empty()) refuse(problem);
    if (archive_entry_hardlink(entry) != nullptr || archive_entry_symlink(entry) != nullptr)
      not_supported(concat({"'", name, "' is a link, and samples must be files"}));
    if (archive_entry_filetype(entry) == AE_IFDIR) return;
    if (archive_entry_filetype(entry) != AE_IFREG) not_supported(concat({"'", name, "' is not a regular file"}));
    const indexed_file added{"", position(), static_cast<std::uint64_t>(archive_entry_size(entry))};
    require_bytes(name, added);
    const auto [key, kind] = hocket::data::split_name(name);
    if (kind.empty() || key.empty() || key.back() == '/') {
      std::fprintf(stderr, "hocket-data: '%s' has no key and kind: it is left out\n", name.c_str());
      return;
    }
    if (result_.samples.empty() || result_.samples.back().key != key) result_.samples.push_back({std::string(key), {}});
    auto& files = result_.samples.back().files;
    if (std::any_of(files.begin(), files.end(), [&, wanted = kind](const auto& each) { return each.kind == wanted; }))
      refuse(concat({"'", name, "' is in the sample before already"}));
    files.push_back({std::string(kind), added.at, added.bytes});
  }

  /// Checks that the bytes of a file are together, at its offset: those of a sparse file are not.
  void require_bytes(const std::string& name, const indexed_file& added) {
    std::uint64_t read = 0;
    const void* block = nullptr;
    std::size_t size = 0;
    std::int64_t offset = 0;
    for (;;) {
      const int outcome = archive_read_data_block(archive_.get(), &block, &size, &offset);
      if (outcome == ARCHIVE_EOF) break;
      if (outcome != ARCHIVE_OK) fail();
      const auto* const expected = file_.bytes.data() + added.at + read;
      if (static_cast<std::uint64_t>(offset) != read || block != expected) refuse_sparse(name);
      read += size;
    }
    if (read != added.bytes) refuse_sparse(name);
  }
  [[noreturn]] void refuse_sparse(const std::string& name) const {
    not_supported(concat({"'", name, "' is a sparse file, whose bytes are not together"}));
  }

  const named_bytes& file_;
  std::unique_ptr<archive, archive_end> archive_;
  tar_index result_;
};

}  // namespace

void write_index(const std::string& path) {
  const auto mapped = hocket::data::open_file(path);
  const tar_index found = indexer({path, mapped.bytes()}).run();
  const std::string name = path + ".index", unfinished = name + ".unfinished";
  std::ofstream out(unfinished, std::ios::binary);
  out << encode_tar_index(found);
  out.close();
  if (!out) throw std::runtime_error("cannot write '" + unfinished + "'");
  std::filesystem::rename(unfinished, name);
  std::printf("%s: %zu samples\n", name.c_str(), found.samples.size());
}

}  // namespace data_tool
