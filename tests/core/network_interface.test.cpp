// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/catch.hpp"

#include <hocket/core/platform/network_interface.hpp>

#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace {

/// Returns the address of a socket that is bound to `text`.
hocket::platform::ip_address address_in_socket(const char* text) {
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, text, &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    return hocket::platform::ip_address_in(reinterpret_cast<const sockaddr*>(&four));
  }
  REQUIRE(::inet_pton(AF_INET6, text, &six.sin6_addr) == 1);
  six.sin6_family = AF_INET6;
  return hocket::platform::ip_address_in(reinterpret_cast<const sockaddr*>(&six));
}

}  // namespace

TEST_CASE("an IP address has one form, also if a socket of IPv6 shows an address of IPv4") {
  CHECK(address_in_socket("10.0.0.1").text() == "10.0.0.1");
  CHECK(address_in_socket("fd00::1").text() == "fd00::1");
  CHECK(address_in_socket("::ffff:10.0.0.1") == address_in_socket("10.0.0.1"));
  CHECK_FALSE(address_in_socket("fd00::1") == address_in_socket("fd00::2"));
  CHECK_FALSE(hocket::platform::ip_address_in(nullptr));
  sockaddr_storage local{};
  local.ss_family = AF_UNIX;
  CHECK_FALSE(hocket::platform::ip_address_in(reinterpret_cast<const sockaddr*>(&local)));
  CHECK(hocket::platform::ip_address().text().empty());
}

TEST_CASE("the addresses of this machine are those that other hosts could reach") {
  for (const auto& each : hocket::platform::own_interface_addresses()) {
    INFO(each.interface_name << ' ' << each.address.text());
    CHECK(::if_nametoindex(each.interface_name.c_str()) != 0);
    CHECK(each.address.text().rfind("127.", 0) == std::string::npos);
    CHECK(each.address.text() != "::1");
    CHECK(each.address.text().rfind("fe80:", 0) == std::string::npos);
  }
}
