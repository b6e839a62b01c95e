// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/data/remote/curl.hpp>

int main() {
  hocket::data::http_source web;
  hocket::data::remote_file file;
  const hocket::failure cause = web.describe("ftp://127.0.0.1/a", file);
  return cause.code == hocket::errc::invalid_argument ? 0 : 1;
}
