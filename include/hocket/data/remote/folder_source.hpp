// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of a folder as remote files: a folder on a shared file system, whose files are cached on a disk of the host;
/// or any folder, to try a program without a server.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/locked_file.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/remote/source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// The name of a file is its path in the folder. Its version is the time of its last change, so that a file that
/// changes while it is read is an error. How long a call takes is bounded by the file system only.
class folder_source final : public remote_source {
 public:
  explicit folder_source(std::string folder) : folder_(std::move(folder)) {}

  failure describe(const std::string& name, remote_file& result) override {
    platform::locked_file file;
    platform::file_status status;
    if (failure cause = open(name, file, status)) return cause;
    result = {name, status.bytes, version_of(status)};
    return {};
  }

  failure read(const remote_file& file, std::uint64_t offset, std::span<std::byte> into) override {
    platform::locked_file opened;
    platform::file_status before, after;
    if (failure cause = open(file.name, opened, before)) return cause;
    const int read_error = opened.read(into, offset), status_error = opened.status(after);
    for (const platform::file_status& each : {before, after}) {
      if (each.bytes != file.bytes || version_of(each) != file.version) return changed(file, each);
    }
    const int error = read_error != 0 ? read_error : status_error;
    return error == 0 ? failure() : failed("read", file.name, error);
  }

 private:
  static std::string version_of(const platform::file_status& status) {
    return hocket::detail::concat({"changed at ", status.changed, " ns"});
  }

  std::string path_of(const std::string& name) const { return folder_ + '/' + name; }

  failure failed(const char* what, const std::string& name, int error) const {
    return make_failure(errc::system, hocket::detail::concat({"cannot ", what, " '", path_of(name),
                                                              "': ", std::generic_category().message(error)}));
  }

  failure changed(const remote_file& file, const platform::file_status& found) const {
    return make_failure(
        errc::corrupted,
        hocket::detail::concat({"'", path_of(file.name), "' has changed while it was used: it had ", file.bytes,
                                " bytes (", file.version, "), and has ", found.bytes, " (", version_of(found), ')'}));
  }

  failure open(const std::string& name, platform::locked_file& file, platform::file_status& status) const {
    int error = file.open(path_of(name), platform::access::read_linked);
    if (error == 0) error = file.status(status);
    return error == 0 ? failure() : failed("open", name, error);
  }

  std::string folder_;
};

}  // namespace data
HOCKET_END_NAMESPACE
