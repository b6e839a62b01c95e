// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "convert.hpp"
#include "progress.hpp"
#include "text.hpp"

#include <hocket/checkpoint/shard_reader.hpp>
#include <hocket/checkpoint/shard_writer.hpp>
#include <hocket/checkpoint/store.hpp>
#include <hocket/group/local.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace checkpoint_tool {

namespace {

using namespace hocket::checkpoint;

/// Memory for a rank's share of all tensors, which are cut along their first dimension.
struct share {
  share(const manifest& of, std::uint64_t rank, std::uint64_t ranks) : memory(of.tensors.size()) {
    for (std::size_t i = 0; i < of.tensors.size(); ++i) {
      const tensor_description& tensor = of.tensors[i];
      rectangle where = whole_of(tensor.extents);
      if (!where.size.empty()) {
        const std::uint64_t rows = where.size[0];
        where.begin[0] = rows * rank / ranks;
        where.size[0] = rows * (rank + 1) / ranks - where.begin[0];
      }
      memory[i].resize(static_cast<std::size_t>(tensor.bytes_in(where)));
      parts.add({tensor.name, tensor.type, tensor.extents, where, memory[i].data()});
    }
  }

  std::vector<std::vector<std::byte>> memory;
  state parts;
};

/// The name of a file that is removed, unless it has been renamed.
class unfinished_file {
 public:
  explicit unfinished_file(std::string path) : path_(std::move(path)) {}
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  ~unfinished_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }

 private:
  const std::string path_;
};

/// Copies the elements of a tensor into a file, in row-major order, through memory for some of its rows.
void append_tensor(hocket::checkpoint::detail::part_reader& reader, const tensor_description& tensor,
                   hocket::checkpoint::detail::buffered_writer& file, progress& bar, std::uint64_t& done) {
  constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
  const std::uint64_t element = bytes_of(tensor.type), all = whole_of(tensor.extents).volume();
  for (std::uint64_t first = 0; first < all;) {
    const std::uint64_t count = std::min(all - first, most_bytes / element);
    for (const rectangle& rows : rectangles_of_range(whole_of(tensor.extents), first, count)) {
      std::vector<std::byte> memory(static_cast<std::size_t>(tensor.bytes_in(rows)));
      for (const stored_part& part : tensor.parts) {
        const rectangle region = intersection(part.where, rows);
        if (region.is_empty()) continue;
        const hocket::checkpoint::detail::reading what{{{&tensor, &part, {{0, 0, region}}}}};
        if (hocket::failure cause = reader.read(what)) hocket::raise(std::move(cause));
        copy_region(region, element, memory.data(), rows, reader.bytes_of_part(what.parts.front()).data(), part.where);
      }
      file.add(memory);
      bar.show(done += memory.size());
    }
    first += count;
  }
}

}  // namespace

int convert_to_ranks(const std::string& from, const std::string& name, const std::string& to, int ranks) {
  hocket::platform::file_system files;
  const folder all(files, from);
  std::string text;
  const manifest found = manifest_of(all, name, text);
  std::error_code ignored;
  if (std::filesystem::equivalent(from, to, ignored) && found.at != valid_in(all).front())
    throw std::runtime_error("'" + name_of(found.at) + "' would become the newest checkpoint of '" + to +
                             "', which a training loads: pass another folder");
  hocket::local::run(ranks, [&](const hocket::local::communicator& comm) {
    share own(found, static_cast<std::uint64_t>(comm.rank()), static_cast<std::uint64_t>(comm.size()));
    store(from, comm).load(found.at, own.parts);
    const position at = store(to, comm, {.keep = {.last = SIZE_MAX}}).save(found.at.step, own.parts);
    if (comm.rank() == 0) std::printf("%s/%s: %d files\n", to.c_str(), name_of(at).c_str(), comm.size());
  });
  return 0;
}

int convert_to_file(const std::string& from, const std::string& name, const std::string& path) {
  hocket::platform::file_system files;
  const folder all(files, from);
  std::string text;
  const manifest found = manifest_of(all, name, text);
  safetensors_header header;
  header.metadata.assign(found.metadata.begin(), found.metadata.end());
  std::uint64_t at = 0;
  for (const tensor_description& each : found.tensors) {
    const std::uint64_t bytes = each.bytes_in(whole_of(each.extents));
    header.tensors.push_back({each.name, each.type, each.extents, at, at + bytes});
    at += bytes;
  }
  if (std::filesystem::exists(path)) throw std::runtime_error("'" + path + "' exists already: pass a new name");
  const unfinished_file part(path + ".part");
  write_rate rate;
  hocket::checkpoint::detail::write_buffers buffers;
  hocket::checkpoint::detail::buffered_writer file(files, part.path(), rate, buffers);
  const std::string front = encode_safetensors_header(header, hocket::platform::direct_access_bytes);
  file.add(std::as_bytes(std::span(front)));
  hocket::checkpoint::detail::part_reader reader(files, all.path_of(found.at), found);
  progress bar("writing " + path, at);
  std::uint64_t done = 0;
  for (const tensor_description& each : found.tensors) append_tensor(reader, each, file, bar, done);
  if (hocket::failure cause = file.finish()) hocket::raise(std::move(cause));
  std::filesystem::rename(part.path(), path);
  std::printf("%s: %zu tensors, %s\n", path.c_str(), found.tensors.size(), bytes_text(at).c_str());
  return 0;
}

}  // namespace checkpoint_tool
