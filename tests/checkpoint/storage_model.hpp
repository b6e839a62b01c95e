// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A model of storage that loses what was not synced. It records the system calls of saves; then a test asks what each
/// possible loss of power would have left, and reads that through the same interface.
///
/// Pending are the bytes of a file until it is synced, and the entries of a folder until the folder is: each of them may be
/// kept or lost, in any combination. A rename is one entry. This is more than journaling file systems lose.
#pragma once

#include <hocket/core/platform/file_system.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace checkpoint_test {

using hocket::platform::file_descriptor;
using hocket::platform::file_use;

using node = int;  ///< a file or a folder
inline constexpr node root_node = 0, no_node = -1;

/// What is stored: entries of folders, and bytes of files.
struct image {
  std::map<node, std::map<std::string, node>> folders{{root_node, {}}};
  std::map<node, std::vector<std::byte>> files;

  node find(const std::string& path) const {
    node at = root_node;
    std::vector<node> above;  // folders on the way, for ".."
    for (std::size_t begin = 1; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto folder = folders.find(at);
      if (folder == folders.end()) return no_node;
      const std::string name = path.substr(begin, end - begin);
      begin = end + 1;
      if (name == "..") {
        at = above.empty() ? root_node : above.back();
        if (!above.empty()) above.pop_back();
        continue;
      }
      const auto entry = folder->second.find(name);
      if (entry == folder->second.end()) return no_node;
      above.push_back(at);
      at = entry->second;
    }
    return at;
  }
};

/// One change of what is stored.
struct effect {
  node target;                                        ///< file or folder, whose sync makes it durable
  std::vector<std::pair<std::string, node>> entries;  ///< of a folder: names, and what they mean from now on
  std::uint64_t offset = 0;                           ///< of a file: where `bytes` are written
  std::vector<std::byte> bytes;
  node made_folder = no_node;  ///< a new folder, to which an entry refers
};

inline void apply(const effect& what, image& to) {
  for (const auto& [name, meant] : what.entries) {
    if (meant == no_node) to.folders[what.target].erase(name);
    else to.folders[what.target][name] = meant;
  }
  if (what.made_folder != no_node) to.folders[what.made_folder];
  if (what.bytes.empty()) return;
  auto& file = to.files[what.target];
  file.resize(std::max<std::size_t>(file.size(), what.offset + what.bytes.size()));
  std::copy(what.bytes.begin(), what.bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(what.offset));
}

/// A file system whose contents are an image.
class image_files : public hocket::platform::file_system {
 public:
  explicit image_files(image contents = {}) : now_(std::move(contents)) {}

  int open(const std::string& path, file_use how, file_descriptor& result) override {
    const std::lock_guard lock(mutex_);
    const bool creates = how == file_use::create || how == file_use::create_directly;
    node found = now_.find(path);
    if (creates && found != no_node) return EEXIST;
    if (!creates && found == no_node) return ENOENT;
    const bool is_folder = now_.folders.contains(found);
    if (is_folder != (how == file_use::folder || how == file_use::folder_itself)) return is_folder ? EISDIR : ENOTDIR;
    if (creates) {
      const node in = now_.find(folder_of(path));
      if (in == no_node) return ENOENT;
      found = next_++;
      changes({in, {{name_in(path), found}}, 0, {}, no_node});
      now_.files[found];
    }
    result.reset(::memfd_create("image", MFD_CLOEXEC));
    opened_[result.get()] = {found, path};
    const auto& bytes = now_.files[found];
    std::size_t written = 0;
    if (!bytes.empty()) file_system::write(result.get(), bytes, 0, written);
    return 0;
  }
  int write(int file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& written) override {
    const std::lock_guard lock(mutex_);
    changes({opened_.at(file).first, {}, offset, {bytes.begin(), bytes.end()}, no_node});
    return file_system::write(file, bytes, offset, written);
  }
  int sync(int file) override {
    const std::lock_guard lock(mutex_);
    const auto& [target, path] = opened_.at(file);
    syncs(target, path);
    return 0;
  }
  int lock(const std::string&, file_descriptor&) override { return ENOLCK; }
  int make_folder(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (now_.find(path) != no_node) return EEXIST;
    const node in = now_.find(folder_of(path)), made = next_++;
    if (in == no_node) return ENOENT;
    changes({in, {{name_in(path), made}}, 0, {}, made});
    return 0;
  }
  int rename_to_new(const std::string& from, const std::string& to) override {
    {
      const std::lock_guard lock(mutex_);
      if (now_.find(to) != no_node) return EEXIST;
    }
    return rename(from, to);
  }
  int rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    const node what = now_.find(from);
    if (what == no_node) return ENOENT;
    changes({now_.find(folder_of(from)), {{name_in(from), no_node}, {name_in(to), what}}, 0, {}, no_node});
    return 0;
  }
  int remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    if (now_.find(path) == no_node) return ENOENT;
    changes({now_.find(folder_of(path)), {{name_in(path), no_node}}, 0, {}, no_node});
    return 0;
  }
  int remove_folder(const std::string& path) override { return remove(path); }
  int list(const std::string& path, std::vector<std::string>& names) override {
    const std::lock_guard lock(mutex_);
    names.clear();
    const auto found = now_.folders.find(now_.find(path));
    if (found == now_.folders.end()) return ENOENT;
    for (const auto& [name, meant] : found->second) names.push_back(name);
    return 0;
  }

 protected:
  virtual void changes(const effect& what) { apply(what, now_); }
  virtual void syncs(node, const std::string&) {}

 private:
  static std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }
  static std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  std::mutex mutex_;
  image now_;
  std::map<int, std::pair<node, std::string>> opened_;
  node next_ = 1;
};

/// Records what is changed and synced.
class recorded_files : public image_files {
 public:
  struct event {
    effect change{};  ///< unless it is a sync
    bool is_sync = false;
    node synced = no_node;
    std::string label{};  ///< of a sync: its path, and for a folder its number, as in "/a/b 2"
  };

  const std::vector<event>& events() const noexcept { return events_; }

 private:
  void changes(const effect& what) override {
    events_.push_back({what});
    image_files::changes(what);
  }
  void syncs(node target, const std::string& path) override {
    events_.push_back({effect{}, true, target, path + ' ' + std::to_string(++times_[path])});
  }

  std::vector<event> events_;
  std::map<std::string, int> times_;
};

/// Which changes of the first `count` events would surely be stored, and which perhaps; `ignored` syncs do not count.
struct stored_changes {
  std::vector<const effect*> all;
  std::vector<std::size_t> pending;  ///< indices in `all`
};

inline stored_changes stored_after(const std::vector<recorded_files::event>& events, std::size_t count,
                                   const std::function<bool(const std::string&)>& ignored) {
  stored_changes result;
  std::set<node> synced_later;
  for (std::size_t i = count; i-- > 0;) {
    const auto& each = events[i];
    if (each.is_sync && !ignored(each.label)) synced_later.insert(each.synced);
    if (each.is_sync) continue;
    if (!synced_later.contains(each.change.target)) result.pending.push_back(result.all.size());
    result.all.push_back(&each.change);
  }
  std::reverse(result.all.begin(), result.all.end());
  for (std::size_t& each : result.pending) each = result.all.size() - 1 - each;
  return result;
}

}  // namespace checkpoint_test
