#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# one_definition.sh COMPILER INCLUDE_FOLDER SOURCE_FOLDER SCRATCH_FOLDER
#
# Builds and runs a program of two translation units, one with NDEBUG and one without, first with the assertion levels that
# NDEBUG selects and then with equal ones. The linker compares all types and functions of the two units, which must not
# have different definitions under one name. Last, two units that do must be refused, so that the comparison can fail.
set -eu
compiler=$1 include=$2 sources=$3 scratch=$4
mkdir -p "$scratch"
flags="-std=c++20 -O1 -pthread -I $include"
case $("$compiler" --version) in
*clang*) ;; # has no comparison
*) flags="$flags -flto=2 -fno-fat-lto-objects -Werror=odr -Werror=lto-type-mismatch" ;;
esac

build() { # PROGRAM FLAGS_OF_BOTH FLAGS_OF_UNIT SOURCES_FOLDER
  # The flags must be split into words.
  # shellcheck disable=SC2086
  "$compiler" $flags $2 -c "$4/main.cpp" -o "$scratch/$1.main.o"
  # shellcheck disable=SC2086
  "$compiler" $flags $2 $3 -c "$4/unit.cpp" -o "$scratch/$1.unit.o"
  # shellcheck disable=SC2086
  "$compiler" $flags "$scratch/$1.main.o" "$scratch/$1.unit.o" -o "$scratch/$1"
}

for level in default equal; do
  both=
  if [ "$level" = equal ]; then both="-DSAME_LEVEL -DHOCKET_ASSERTION_LEVEL=1"; fi
  build "$level" "$both" -DNDEBUG "$sources"
  "$scratch/$level"
done

case $flags in
*-flto*)
  mkdir -p "$scratch/differing"
  echo 'struct pair { int first; }; void use(pair&); int main() { pair p{}; use(p); }' >"$scratch/differing/main.cpp"
  echo 'struct pair { int first; long second; }; void use(pair& p) { p.second = 1; }' >"$scratch/differing/unit.cpp"
  if build refused "" "" "$scratch/differing" 2>"$scratch/differing/errors"; then
    echo "one_definition.sh: the linker accepted two definitions of one type" >&2
    exit 1
  fi
  grep -q 'Werror=odr' "$scratch/differing/errors"
  ;;
esac
