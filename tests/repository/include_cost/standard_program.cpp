// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A program of the standard library alone, which the compiler optimises for seconds: the measure for programs that do so.
#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

template <class Key>
int count(const std::vector<Key>& keys) {
  std::map<Key, std::vector<Key>> ordered;
  std::unordered_map<Key, std::deque<Key>> hashed;
  for (const Key& each : keys) {
    ordered[each].push_back(each);
    hashed[each].push_front(each);
  }
  std::vector<Key> sorted = keys;
  std::stable_sort(sorted.begin(), sorted.end(), std::greater<>());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return static_cast<int>(ordered.size() + hashed.size() + sorted.size());
}

}  // namespace

int main(int words, char* text[]) {
  std::vector<std::string> all(text, text + words);
  std::vector<int> lengths;
  std::vector<double> halves;
  for (const std::string& each : all) {
    const bool found = std::regex_search(each, std::regex("([a-z]+)[0-9]*"));
    lengths.push_back(static_cast<int>(each.size()) + (found ? 1 : 0));
    halves.push_back(lengths.back() / 2.0);
  }
  return count(all) + count(lengths) + count(halves);
}
