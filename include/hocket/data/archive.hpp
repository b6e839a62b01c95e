// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Makes the index of a tar file of samples, by which `tar_shards` reads it. Needs libarchive: link `hocket::archive`.
///
/// @code
/// hocket::data::write_tar_index("shard-0.tar");                  // writes shard-0.tar.index
/// @endcode
///
/// libarchive knows the variants of the format. Nothing is unpacked, but the bytes of each file are compared with those
/// at its offset, which those of a sparse file are not.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/plain_locale.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/tar_index.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// What a tar file has: samples, and files that belong to none, because their names have no key and kind.
struct tar_content {
  tar_index index;
  std::vector<std::string> left_out;
};

namespace detail {

/// Returns why a name can't be that of a sample; empty if it can. A tar file with such names is damaged or made to do
/// harm.
inline std::string problem_of_name(std::string_view name) {
  using hocket::detail::concat;
  if (name.empty()) return "it has a file without a name";
  if (!hocket::detail::is_utf8(name)) {
    return concat({"the name '", hocket::detail::to_utf8(name),
                   "' is not UTF-8, which an index needs: write the tar file with names in UTF-8"});
  }
  if (name.front() == '/') return concat({"'", name, "' is an absolute name"});
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    if (rest.substr(0, slash) == "..") return concat({"'", name, "' is a name outside of its folder"});
    rest.remove_prefix(std::min(slash + 1, rest.size()));
  }
  return "";
}

class tar_indexer {
 public:
  explicit tar_indexer(const named_bytes& file) : file_(file), archive_(::archive_read_new()) {
    if (!archive_) raise(errc::out_of_memory, "libarchive can't be used", {.operation = "data::index_of_tar"});
    ::archive_read_support_format_tar(archive_.get());
    if (::archive_read_open_memory(archive_.get(), file.bytes.data(), file.bytes.size()) != ARCHIVE_OK) fail();
  }

  tar_content run() {
    result_.index.bytes = file_.bytes.size();
    ::archive_entry* entry = nullptr;
    for (;;) {
      const int outcome = ::archive_read_next_header(archive_.get(), &entry);
      if (outcome == ARCHIVE_EOF) break;
      if (outcome != ARCHIVE_OK && !(outcome == ARCHIVE_WARN && is_about_locale())) fail();
      add(entry);
    }
    require_end();
    return std::move(result_);
  }

 private:
  static constexpr std::uint64_t block_bytes = 512;

  struct end_reading {
    void operator()(::archive* which) const noexcept { ::archive_read_free(which); }
  };

  std::uint64_t position() const noexcept {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, ::archive_filter_bytes(archive_.get(), 0)));
  }
  [[noreturn]] void refuse(std::string_view reason) const { detail::refuse(file_, position(), reason); }
  [[noreturn]] void not_supported(std::string_view reason) const {
    detail::refuse(file_, position(), reason, errc::invalid_argument);
  }
  [[noreturn]] void fail() const {
    const char* const reason = ::archive_error_string(archive_.get());
    refuse(hocket::detail::concat({"it is no whole tar file without compression: ",
                                   reason != nullptr ? reason : "a header is damaged or was cut"}));
  }

  /// Checks that the end-of-archive marker, two blocks of zeros, follows the last entry: without it, a file that was
  /// cut between two entries is a tar file with fewer samples. After the marker there may only be more zeros, which fill
  /// the last record: programs ignore other bytes, so that the samples of a second archive would be missing.
  void require_end() const {
    const auto after = file_.bytes.subspan(std::min<std::size_t>(end_of_entries_, file_.bytes.size()));
    const auto other = std::find_if(after.begin(), after.end(), [](std::byte each) { return each != std::byte{0}; });
    const auto zeros = static_cast<std::size_t>(other - after.begin());
    if (zeros < 2 * block_bytes) {
      detail::refuse(
          file_, end_of_entries_,
          "it is no whole tar file without compression: two blocks of 512 zeros must follow the last entry, and "
          "do not: was the file cut?");
    }
    if (other == after.end()) return;
    detail::refuse(
        file_, end_of_entries_ + zeros,
        "bytes that are not zero follow the end of the archive: was another tar file appended to it? Use tar "
        "--concatenate to make one archive of several");
  }

  /// Whether a warning says that a name has characters that the locale lacks. Its bytes are right, too.
  bool is_about_locale() const {
    const char* const reason = ::archive_error_string(archive_.get());
    return reason != nullptr &&
           std::string_view(reason).find("can't be converted from UTF-8") != std::string_view::npos;
  }

  void add(::archive_entry* entry) {
    using hocket::detail::concat;
    const char* const text = ::archive_entry_pathname(entry);
    const std::string name = text != nullptr ? text : "";
    if (const std::string problem = problem_of_name(name); !problem.empty()) refuse(problem);
    const bool has_bytes = ::archive_entry_filetype(entry) == AE_IFREG;
    const auto bytes = has_bytes ? static_cast<std::uint64_t>(::archive_entry_size(entry)) : 0;
    end_of_entries_ = position() + (bytes + block_bytes - 1) / block_bytes * block_bytes;
    if (::archive_entry_hardlink(entry) != nullptr || ::archive_entry_symlink(entry) != nullptr)
      not_supported(concat({"'", name, "' is a link, and samples must be files"}));
    if (::archive_entry_filetype(entry) == AE_IFDIR) return;
    if (!has_bytes) not_supported(concat({"'", name, "' is not a regular file"}));
    const indexed_file added{"", position(), bytes};
    require_bytes(name, added);
    const auto [key, kind] = split_name(name);
    if (kind.empty() || key.empty() || key.back() == '/') result_.left_out.push_back(name);
    else add(name, key, kind, added);
  }

  void add(const std::string& name, std::string_view key, std::string_view kind, const indexed_file& added) {
    auto& samples = result_.index.samples;
    if (samples.empty() || samples.back().key != key) samples.push_back({std::string(key), {}});
    auto& files = samples.back().files;
    if (std::any_of(files.begin(), files.end(), [&](const indexed_file& each) { return each.kind == kind; }))
      refuse(hocket::detail::concat({"'", name, "' is in the sample before already"}));
    files.push_back({std::string(kind), added.at, added.bytes});
  }

  /// Checks that the bytes of a file are together, at its offset: those of a sparse file are not.
  void require_bytes(const std::string& name, const indexed_file& added) {
    std::uint64_t read = 0;
    const void* block = nullptr;
    std::size_t size = 0;
    std::int64_t offset = 0;
    for (;;) {
      const int outcome = ::archive_read_data_block(archive_.get(), &block, &size, &offset);
      if (outcome == ARCHIVE_EOF) break;
      if (outcome != ARCHIVE_OK) fail();
      const auto* const expected = file_.bytes.data() + added.at + read;
      if (static_cast<std::uint64_t>(offset) != read || block != expected) refuse_sparse(name);
      read += size;
    }
    if (read != added.bytes) refuse_sparse(name);
  }
  [[noreturn]] void refuse_sparse(const std::string& name) const {
    not_supported(hocket::detail::concat({"'", name, "' is a sparse file, whose bytes are not together"}));
  }

  const named_bytes& file_;
  platform::plain_locale locale_;  // libarchive reads names by the locale of the thread
  std::unique_ptr<::archive, end_reading> archive_;
  tar_content result_;
  std::uint64_t end_of_entries_ = 0;
};

}  // namespace detail

/// Returns what the tar file `path` has.
///
/// **Cost.** Reads the whole file. **Errors.** `system` if it can't be mapped; with file and offset, `corrupted` if it
/// is no whole tar file without compression, has bytes other than zeros after its end, or has absolute names, names with
/// `..`, names that are not UTF-8 or two files of one name, and `invalid_argument` if it has links, sparse files, or what
/// is neither file nor folder.
inline tar_content index_of_tar(const std::string& path) {
  const opened_file opened = open_file(path);
  const detail::named_bytes file = detail::bytes_of(opened);
  return detail::tar_indexer(file).run();
}

/// Writes the index of the tar file `path` to `path`.index, which is replaced at once, and returns what the file has.
///
/// **Errors.** As `index_of_tar`; `system` if the index can't be written.
inline tar_content write_tar_index(const std::string& path) {
  tar_content found = index_of_tar(path);
  const std::string name = path + ".index", text = encode_tar_index(found.index);
  platform::file_system files;
  if (const int error = platform::replace_file(files, name, std::as_bytes(std::span(text))); error != 0)
    raise(platform::system_failure(hocket::detail::concat({"cannot write '", name, "'"}), error));
  return found;
}

}  // namespace data
HOCKET_END_NAMESPACE
