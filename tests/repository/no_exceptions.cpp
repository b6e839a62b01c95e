// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls of each kind, compiled without exceptions and with all warnings, because including the headers alone does not
// instantiate templates.
#include <hocket/hocket.hpp>

#include <functional>
#include <span>
#include <system_error>
#include <vector>

void call_everything(const hocket::local::communicator& comm, std::vector<int>& in, std::vector<int>& out) {
  std::error_code code;
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::ring), code);
  hocket::all_gather(comm, std::span(in).first(1), out, hocket::with(), code);
  hocket::reduce_scatter(comm, in, std::span(out).first(1), std::plus<>{}, hocket::with(), code);
  hocket::all_to_all(comm, in, out, hocket::with(), code);
  hocket::broadcast(comm, out, hocket::root{0}, hocket::with(), code);
  hocket::barrier(comm, hocket::with(), code);
  hocket::send_recv(comm, in, hocket::peer{0}, out, hocket::peer{0}, hocket::tag{1}, hocket::with(), code);
  hocket::request pending = hocket::all_reduce_async(comm, in, out);
  pending.wait(code);
  const auto part = hocket::split(comm, hocket::color{0});
  const auto left = hocket::shrink(part);
  hocket::barrier(left);
}
