// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/data/archive.hpp>

#include <fstream>
#include <string>

int main() {
  // A tar file of one file "a.b" with the content "c", and its end.
  std::string tar(2048, '\0');
  const auto write = [&](std::size_t at, const std::string& text) { tar.replace(at, text.size(), text); };
  write(0, "a.b");
  write(100, "0000644");
  write(124, "00000000001");
  write(136, "00000000000");
  write(148, "        ");
  write(156, "0");
  write(257, "ustar");
  write(263, "00");
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(tar[i]);
  std::string digits(6, '0');
  for (std::size_t i = 6; i-- > 0; sum /= 8) digits[i] = static_cast<char>('0' + sum % 8);
  write(148, digits + '\0' + ' ');
  write(512, "c");
  std::ofstream("one.tar", std::ios::binary) << tar;
  const hocket::data::tar_content found = hocket::data::write_tar_index("one.tar");
  return found.index.samples.size() == 1 && found.index.samples[0].files.at(0).at == 512 ? 0 : 1;
}
