// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "token_data.hpp"

#include <hocket/data/loader.hpp>
#include <hocket/data/mixture.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/share.hpp>
#include <hocket/data/token_file.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {
namespace {

namespace data = hocket::data;

/// The files as the source of a mixture.
class token_files {
 public:
  using batch_type = std::vector<std::uint32_t>;

  void add(const std::string& path, std::uint64_t length) {
    const data::token_file& file = files_.emplace_back(path);
    samples_.push_back(file.samples(length));
    paths_.push_back(path);
    if (samples_.back().size() > 0) return;
    throw std::runtime_error("--data '" + path + "' has " + std::to_string(file.size()) +
                             " tokens of 16 bits, fewer than a sequence of --context " + std::to_string(length) +
                             " and one more");
  }

  const std::vector<data::token_samples>& samples() const noexcept { return samples_; }

  void append(const data::mixed_sample& sample, batch_type& to) const {
    const std::size_t before = to.size();
    samples_[sample.source].append(sample.sample, to);
    const auto wrong = std::find_if(to.begin() + static_cast<std::ptrdiff_t>(before), to.end(),
                                    [](std::uint32_t token) { return token > 255; });
    if (wrong == to.end()) return;
    throw std::runtime_error("--data '" + paths_[sample.source] + "': sample " + std::to_string(sample.sample) +
                             " has the token " + std::to_string(*wrong) +
                             ": tokens of this model are bytes, below 256");
  }

 private:
  std::deque<data::token_file> files_;
  std::vector<data::token_samples> samples_;
  std::vector<std::string> paths_;
};

struct named_weight {
  std::string path;
  std::uint64_t weight = 1;
};

named_weight parsed(const std::string& file) {
  const std::size_t at = file.rfind('=');
  if (at == file.npos) return {file, 1};
  named_weight result{file.substr(0, at), 0};
  const char* const end = file.data() + file.size();
  const auto [rest, problem] = std::from_chars(file.data() + at + 1, end, result.weight);
  if (problem == std::errc() && rest == end && result.weight > 0) return result;
  throw std::runtime_error("--data '" + file + "': the text after the last '=' must be a weight, such as '" +
                           result.path + "=3'");
}

}  // namespace

struct token_data::parts {
  using loader_type = data::loader<data::mixture, token_files>;

  token_files files;
  std::vector<data::order> orders;
  std::vector<std::uint64_t> weights;
  std::optional<data::mixture> mixture;
  std::string description;
  std::size_t length = 0;  ///< of a sequence
  std::optional<loader_type> batches;
  int next = -1;  ///< the step whose batch the loader returns next
  std::vector<std::uint8_t> bytes;
};

token_data::token_data(const std::vector<std::string>& files, int context, std::uint64_t seed)
    : parts_(std::make_unique<parts>()) {
  parts& at = *parts_;
  at.length = static_cast<std::size_t>(context) + 1;
  for (const std::string& each : files) {
    const named_weight named = parsed(each);
    at.files.add(named.path, static_cast<std::uint64_t>(context));
    const std::uint64_t samples = at.files.samples().back().size();
    at.orders.emplace_back(samples, mix(seed + at.orders.size()));
    at.weights.push_back(named.weight);
    if (!at.description.empty()) at.description += ", ";
    at.description += std::to_string(samples) + " x " + std::to_string(named.weight);
  }
  at.mixture.emplace(at.orders, at.weights, seed);
}
token_data::~token_data() = default;

const std::string& token_data::description() const noexcept { return parts_->description; }

void token_data::begin_step(int number, int sequences, int rank, int ranks) {
  parts& at = *parts_;
  if (at.next != number) {
    at.batches.reset();
    const auto batch = static_cast<std::uint64_t>(sequences);
    at.batches.emplace(*at.mixture, at.files, data::share(rank, ranks),
                       data::loader_options{.batch = batch, .prefetch = 2},
                       data::cursor{0, static_cast<std::uint64_t>(number) * batch});
  }
  const std::vector<std::uint32_t>& tokens = at.batches->next().samples;
  at.bytes.assign(tokens.begin(), tokens.end());
  at.next = number + 1;
}

byte_span token_data::sequence(std::size_t i) const {
  return byte_span(parts_->bytes).subspan(i * parts_->length, parts_->length);
}

}  // namespace gpt
