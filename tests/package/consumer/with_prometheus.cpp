// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/observe/prometheus.hpp>

int main() {
  hocket::observe::registry metrics;
  metrics.counter("calls", "calls").add(2);
  hocket::observe::prometheus_endpoint endpoint("127.0.0.1:0", metrics);
  hocket::observe::prometheus_collectable all;
  all.add(metrics);
  return endpoint.port() > 0 && hocket::observe::prometheus_text(all).ends_with("calls_total 2\n") ? 0 : 1;
}
