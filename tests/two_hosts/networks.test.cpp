// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Ranks on two hosts whose networks differ from the usual: start-up finds interfaces by which the hosts reach each other,
// or fails on all ranks with an error that states the interfaces and the remedy.
#include "support/catch.hpp"
#include "support/scratch.hpp"
#include "two_hosts/hosts.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace two_hosts;
using namespace ucx_test;
using hocket::errc;

/// Addresses of the two hosts. On host 2 the interfaces may have other names, which change UCX's order.
const host_network addressings[] = {
    {"IPv4", "ip addr add 10.77.0.$host/24 dev eth0", "10.77.0.1", false},
    {"IPv6", "ip addr add fd77::$host/64 dev eth0 nodad", "fd77::1", false},
    {"IPv4 and IPv6", "ip addr add 10.77.0.$host/24 dev eth0; ip addr add fd77::$host/64 dev eth0 nodad", "fd77::1",
     false},
    {"two networks of IPv4", "ip addr add 10.77.0.$host/24 dev eth0; ip addr add 10.78.0.$host/24 dev eth1",
     "10.77.0.1", true},
    {"two networks of IPv6", "ip addr add fd77::$host/64 dev eth0 nodad; ip addr add fd78::$host/64 dev eth1 nodad",
     "fd77::1", true},
    {"IPv4, and IPv6 alone on a second network",
     "ip addr add 10.77.0.$host/24 dev eth0; ip addr add fd78::$host/64 dev eth1 nodad; "
     "[ $host = 1 ] || ip link set eth1 name eth7",
     "10.77.0.1", true},
};

/// What is special beside the addresses.
struct circumstance {
  const char* name;
  const char* set_up;
  int mtu = 1500;
  shape form{{2, 1}};
  const char* host_name = nullptr;      ///< of rank 0's host, for the store
  void (*prepare)(int rank) = nullptr;  ///< what each rank does before it connects
};

/// After this, ranks of a host can't open each other's files, which sharing memory needs.
void become_another_user(int rank) {
  if (::setuid(static_cast<uid_t>(60'001 + rank)) != 0) std::perror("setuid");
}

constexpr const char* same_bridge =
    "ip link add docker0 type bridge; ip link add c0 type veth peer name c1; ip link set c0 master docker0; "
    "for each in c0 c1 docker0; do ip link set $each up; done; ip addr add 172.17.0.1/16 dev docker0";

const circumstance circumstances[] = {
    {"nothing else", "true"},
    {"a bridge with the same address on both hosts", same_bridge},
    {"an interface that is down, and one without a carrier",
     "ip link add down0 type veth peer name down1; ip addr add 10.79.0.$host/24 dev down0; "
     "ip addr add 10.80.0.$host/24 dev down1; ip link set down0 up"},
    {"packets of 1280 bytes", "true", 1280},
    {"packets of 9000 bytes", "true", 9000},
    {"no loopback interface", "ip link set lo down", 1500, {{1, 2}}},
    {"a host whose name resolves to 127.0.1.1 there",
     "here=127.0.1.1; [ $host = 1 ] || here=$store; echo $here first > /dev/shm/hosts; "
     "mount --bind /dev/shm/hosts /etc/hosts",
     1500,
     {{2, 1}},
     "first"},
    {"ranks of different users", "true", 1500, {{2, 2}}, nullptr, become_another_user},
    {"a read-only /dev/shm", "mount -t tmpfs -o ro none /dev/shm", 1500, {{2, 2}}},
};

host_network in(const host_network& addresses, const circumstance& special) {
  host_network result = addresses;
  result.name += ", " + std::string(special.name);
  result.set_up = "store=" + result.store_host + "; " + result.set_up + "; " + special.set_up;
  result.mtu = special.mtu;
  if (special.host_name != nullptr) result.store_host = special.host_name;
  return result;
}

/// Takes what the process prints while it exists.
class captured_output {
 public:
  captured_output() {
    ::dup2(file_.get(), 1);
    ::dup2(file_.get(), 2);
  }
  captured_output(const captured_output&) = delete;
  captured_output& operator=(const captured_output&) = delete;
  ~captured_output() {
    std::fflush(nullptr);
    ::dup2(out_.get(), 1);
    ::dup2(err_.get(), 2);
  }

  std::string text() const {
    std::fflush(nullptr);
    struct stat found {};
    ::fstat(file_.get(), &found);
    std::string result(static_cast<std::size_t>(found.st_size), ' ');
    return ::pread(file_.get(), result.data(), result.size(), 0) < 0 ? "unreadable" : result;
  }

 private:
  const hocket::platform::file_descriptor file_{::memfd_create("output", MFD_CLOEXEC)}, out_{::dup(1)}, err_{::dup(2)};
};

communicator connect_silently(const world& where, findings& found) {
  std::string printed;
  auto comm = [&] {
    const captured_output output;
    communicator made = hocket::ucx::connect(where, {.timeout = 15s});
    printed = output.text();
    return made;
  }();
  found.equal(printed, std::string(), "what connect prints: " + printed);
  return comm;
}

/// Connects, uses the communicator, and loses the last rank when all have used it. Returns the status of the process.
int connect_and_lose_one(const world& where, blackboard& board, void (*prepare)(int)) {
  findings found("rank " + std::to_string(where.rank));
  if (prepare != nullptr) prepare(where.rank);
  const auto begin = std::chrono::steady_clock::now();
  const communicator comm = connect_silently(where, found);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (const std::size_t count : {1U, 1000U, 300'000U}) check_sum(comm, count, found);
  const int lost = where.ranks - 1;
  board.meet(where.ranks, 1);
  if (where.rank == lost) ::raise(SIGKILL);
  const auto killed = std::chrono::steady_clock::now();
  const auto cause = found.fails(errc::peer_lost, "barrier", [&] {
    for (;;) hocket::barrier(comm);
  });
  const std::chrono::duration<double> noticed = std::chrono::steady_clock::now() - killed;
  found.equal(cause.context.peer, lost, "rank named by the error");
  found.expect(noticed < 3s, "the killed rank was named after " + std::to_string(noticed.count()) + " s");
  if (where.rank == 0) std::printf("connected after %.2f s, lost after %.3f s\n", took.count(), noticed.count());
  return found.any() ? 1 : 0;
}

void check_network(const host_network& addresses, const circumstance& special) {
  const host_network wanted = in(addresses, special);
  INFO(wanted.name);
  std::printf("%s: ", wanted.name.c_str());
  CHECK(run(
            special.form,
            [&](const world& where, findings& found, blackboard& board) {
              const int status =
                  two_hosts::detail::run_forked([&] { return connect_and_lose_one(where, board, special.prepare); });
              found.equal(status, where.rank == where.ranks - 1 ? 128 + SIGKILL : 0, "status");
              board.meet(where.ranks, 2);  // the kernel closes the connections of a host that ends
            },
            40s, wanted) == "");
}

/// Networks in which no way is found.
struct dead_end {
  const char* name;
  const host_network& addresses;
  circumstance special;
  void (*prepare)(world&, blackboard&);  ///< what each rank does before it connects; `directory` is a new one
  const char* says[3];                   ///< what the error contains
};

const dead_end dead_ends[] = {
    {"UCX_NET_DEVICES names the bridge with the same address",
     addressings[0],
     circumstances[1],
     [](world& where, blackboard&) {
       where.directory.clear();
       ::setenv("UCX_NET_DEVICES", "docker0", 1);
     },
     {"UCX_NET_DEVICES='docker0'", "docker0 172.17.0.1", "eth0 10.77.0.2"}},
    {"only a bridge with the same address has IPv4, and the ranks meet in a directory",
     addressings[1],
     circumstances[1],
     [](world& where, blackboard&) { where.address.clear(); },
     {"UCX_NET_DEVICES is not set", "docker0 172.17.0.1", "by the interfaces that UCX chooses"}},
    {"the link takes shorter packets than the interfaces",
     addressings[0],
     circumstances[4],
     [](world& where, blackboard& board) {
       where.directory.clear();
       if (where.rank == 0) board.cable.longest_packet.store(1514);
       board.meet(where.ranks, 1);
     },
     {"no message has arrived in time after", "eth0 10.77.0.1", "by the interfaces that lead to the store"}},
};

}  // namespace

TEST_CASE("two hosts connect over any network that joins them, and a killed rank is named within 3 s") {
  if (cannot_run()) return;
  check_network(addressings[0], circumstances[1]);
  check_network(addressings[5], circumstances[1]);
  check_network(addressings[1], circumstances[1]);  // the only IPv4 is that of the bridge
  check_network(addressings[1], circumstances[5]);
  check_network(addressings[0], circumstances[6]);
  check_network(addressings[0], circumstances[7]);
  check_network(addressings[0], circumstances[8]);
}

TEST_CASE("two hosts connect with all addresses in all circumstances", "[.networks]") {
  if (cannot_run()) return;
  for (const host_network& addresses : addressings) {
    for (const circumstance& special : circumstances) check_network(addresses, special);
  }
}

TEST_CASE("if no way joins the hosts, connect fails on all ranks, with the interfaces and the variable to set") {
  if (cannot_run()) return;
  for (const dead_end& each : dead_ends) {
    INFO(each.name);
    const hocket_test::scratch_directory place;
    CHECK(run(
              each.special.form,
              [&](world where, findings& found, blackboard& board) {
                where.directory = place.path();
                each.prepare(where, board);
                const auto begin = std::chrono::steady_clock::now();
                const auto cause =
                    found.fails(errc::unreachable, "connect", [&] { hocket::ucx::connect(where, {.timeout = 6s}); });
                found.expect(std::chrono::steady_clock::now() - begin < 7s, "connect took longer than its timeout");
                for (const char* says : each.says) {
                  found.expect(cause.message().find(says) != std::string::npos,
                               std::string("the message lacks '") + says + "': " + cause.message());
                }
              },
              40s, in(each.addresses, each.special)) == "");
  }
}
