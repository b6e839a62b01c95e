// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user-defined type and a user-defined operation for which order matters: the balances of a thousand accounts after a
// year of daily interest and deposits.
//
// A day turns a balance x into factor * x + deposit. Two such steps compose to one of the same kind, so the days can be
// divided: each rank composes the days of its part of the year, and one all_reduce composes the parts, in rank order.
// Steps do not commute (a deposit before interest is worth more than one after it), so hocket uses no algorithm that
// reorders ranks; requesting one, as `with(hocket::ring)` does, is a compile error that states the reason.
// expect: 1000 balances agree with the sequential calculation
#include <hocket/hocket.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace {

constexpr int ranks = 5;
constexpr int days = 365;
constexpr std::size_t accounts = 1000;

/// x -> factor * x + deposit
struct step {
  double factor = 1;
  double deposit = 0;
  double operator()(double balance) const { return factor * balance + deposit; }
};

/// First `earlier`, then `later`. Associative; it does not declare itself commutative, so hocket keeps the order.
struct compose {
  step operator()(const step& earlier, const step& later) const {
    return {later.factor * earlier.factor, later(earlier.deposit)};
  }
};

/// The step of one account on one day: interest that depends on the month, and on some days a deposit or a fee.
step day_of(std::size_t account, int day) {
  const int number = static_cast<int>(account) + day;
  const double deposit = number % 28 == 0 ? 250 : number % 31 == 0 ? -15 : 0;
  return {1 + 1e-4 * (1 + (static_cast<int>(account) + day / 30) % 7), deposit};
}

std::vector<double> balances_by_hand() {
  std::vector<double> balances(accounts, 1000.0);
  for (std::size_t account = 0; account < accounts; ++account) {
    for (int day = 0; day < days; ++day) balances[account] = day_of(account, day)(balances[account]);
  }
  return balances;
}

/// Returns the composition of the steps of this rank's part of the year, for each account.
std::vector<step> part_of_year(int rank) {
  std::vector<step> part(accounts);
  for (std::size_t account = 0; account < accounts; ++account) {
    for (int day = days * rank / ranks; day < days * (rank + 1) / ranks; ++day) {
      part[account] = compose{}(part[account], day_of(account, day));
    }
  }
  return part;
}

}  // namespace

int main() {
  std::vector<step> years(accounts);
  hocket::local::run(ranks, [&](auto comm) {
    const std::vector<step> part = part_of_year(comm.rank());
    std::vector<step> year(accounts);
    hocket::all_reduce(comm, part, year, compose{});
    if (comm.rank() == 0) years = year;
  });

  const std::vector<double> expected = balances_by_hand();
  std::size_t agreeing = 0;
  for (std::size_t account = 0; account < accounts; ++account) {
    const double balance = years[account](1000.0);
    if (std::abs(balance - expected[account]) <= 1e-11 * expected[account]) ++agreeing;
  }
  std::printf("%zu balances agree with the sequential calculation\n", agreeing);
  return agreeing == accounts ? 0 : 1;
}
