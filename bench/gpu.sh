#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   bench/gpu.sh [--sanitize] [FOLDER]
#
# On a machine with a GPU, CUDA and CMake: builds into FOLDER (build/gpu), checks with `ctest -L gpu`, times the device parts
# against a plain device copy and against CUB and Thrust, and prints a table. The checks need Catch2; if CMake does not find
# it, set CATCH2 to a folder with catch2/catch.hpp. The figures belong in docs/performance.md, with date and GPU.
#
# With --sanitize, nothing is timed: the checks run under compute-sanitizer, all of them under memcheck and those of the
# kernels, which use shared memory, under racecheck.
#
# Ends within 8 minutes, and reports what it skipped for lack of time. The exit status is that of the timing, or of the
# checks if the timing succeeded.
set -eu
sanitize=
if [ "${1:-}" = --sanitize ]; then
  sanitize=yes
  shift
fi
[ $# -le 1 ] || set -- --wrong
case ${1:-} in
  -*) sed -n '3,/^set/{/^#/{s/^# \{0,1\}//;p;}}' "$0"; [ "$1" = --help ] || exit 2; exit 0 ;;
esac
begin=$(date +%s)
# Prints the seconds left of the 8 minutes, minus $1; at least 1, because `timeout` takes 0 for no limit.
left() {
  seconds=$((begin + 480 - $1 - $(date +%s)))
  echo $((seconds > 1 ? seconds : 1))
}
root=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$root/build/gpu}
mkdir -p "$folder"
cd "$folder"
folder=$PWD
nvcc=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
jobs=$(nproc)
# A container may lack nvidia-smi; then use nvcc's device query.
architecture=native
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null ||
  "$(dirname "$(readlink -f "$nvcc")")/__nvcc_device_query" >/dev/null 2>&1 || architecture=90
"$nvcc" --version | tail -n 1
date

# Builds the benchmark in parallel with the checks.
[ -n "$sanitize" ] ||
  "$nvcc" -std=c++20 -O2 -arch="$([ $architecture = native ] && echo native || echo sm_90)" -I "$root/include" \
          -I "$root/tests" "$root/bench/gpu.cu" -o gpu >gpu.log 2>&1 &
benchmark=$!

if [ -n "${CATCH2:-}" ]; then
  mkdir -p catch2
  cat >catch2/Catch2Config.cmake <<END
if(NOT TARGET Catch2::Catch2)
  add_library(Catch2::Catch2 INTERFACE IMPORTED)
  set_target_properties(Catch2::Catch2 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$CATCH2")
endif()
END
fi
# configure ARGUMENT...
configure() {
  cmake -S "$root" -B checks -D CMAKE_BUILD_TYPE=Release -D CMAKE_CUDA_COMPILER="$nvcc" \
    -D CMAKE_CUDA_ARCHITECTURES=$architecture -D "HOCKET_TEST_FOLDERS=^((kernel|collective)/device|engine/stream)$" \
    -D HOCKET_TEST_TIMEOUT=150 -D HOCKET_BUILD_REPOSITORY_TESTS=OFF -D HOCKET_BUILD_EXAMPLES=OFF \
    -D HOCKET_BUILD_BENCHMARKS=OFF -D HOCKET_BUILD_TOOLS=OFF "$@" >checks.log 2>&1
}
# sanitized TOOL TEST: runs the program of a test, and prints its log only if it fails.
sanitized() {
  echo "$1, $2:"
  status=0
  timeout -k 10 "$(left 10)" "$sanitizer" --tool "$1" --error-exitcode 99 --target-processes all \
    "checks/tests/hocket.tests.$2.cuda" "[gpu]" >"$1.$2.log" 2>&1 || status=$?
  [ $status = 0 ] || tail -n 40 "$1.$2.log"
  tail -n 3 "$1.$2.log"
  outcomes="$outcomes
$1, $2: status $status$([ $status != 124 ] && [ $status != 137 ] || echo ', out of time')"
  [ $status = 0 ] || checks=$status
}
sanitizer=$(command -v compute-sanitizer || echo "$(dirname "$nvcc")/compute-sanitizer")
if [ -n "$sanitize" ] && [ ! -x "$sanitizer" ]; then
  echo "gpu.sh: compute-sanitizer, which is part of CUDA, is neither on the PATH nor beside $nvcc" >&2
  exit 2
fi
checks=0
: >ctest.log
# A Catch2 that CMake finds takes precedence over CATCH2, because the compiler would find its headers first, too.
if { configure && { [ -z "${CATCH2:-}" ] || ! grep -q 'not built: every test that is a program' checks.log ||
                    configure -D "Catch2_DIR=$folder/catch2"; }; } &&
   timeout "$(left 150)" cmake --build checks -j "$jobs" --target hocket.tests.kernel.device.cuda \
     hocket.tests.engine.stream.cuda hocket.tests.collective.device.cuda >>checks.log 2>&1; then
  if [ -n "$sanitize" ]; then
    outcomes=
    sanitized memcheck kernel.device
    sanitized racecheck kernel.device
    sanitized memcheck collective.device
    sanitized memcheck engine.stream
    echo "$outcomes"
    exit "$checks"
  fi
  echo 0 >checks.status # because the status of the pipe is that of tee
  { timeout -k 10 "$(left 120)" ctest --test-dir checks -L gpu --output-on-failure 2>&1 || echo $? >checks.status; } |
    tee ctest.log
  checks=$(cat checks.status)
else
  echo "the checks could not be built:"
  tail -n 15 checks.log
  checks=1
fi

[ -z "$sanitize" ] || exit $checks

timing=0
if wait $benchmark; then
  seconds=$(left 0)
  timeout -k 10 $((seconds < 200 ? seconds : 200)) ./gpu || timing=$?
else
  tail -n 30 gpu.log
  timing=1
fi

# Printed last, so that the end of the output shows both results.
echo
[ "$timing" != 124 ] || echo "the timing ran out of time: the table is incomplete"
[ "$checks" != 124 ] || echo "the checks ran out of time"
echo "checks ended with status $checks, the timing with $timing"
grep -E '^ *[0-9]+/[0-9]+ Test|% tests passed' ctest.log || echo "no check was run"
[ "$timing" = 0 ] || exit "$timing"
exit "$checks"
