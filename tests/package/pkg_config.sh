#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# pkg_config.sh COMPILER PKG_CONFIG FOLDER_OF_PC_FILES SOURCE_FOLDER SCRATCH_FOLDER
#
# Builds and runs the consumer with only the flags of hocket.pc: header-only, and with separate compilation, in which one
# source contains the compiled part of the library. Then programs of components, if their
# libraries have such files.
set -eu
compiler=$1 pkg_config=$2 sources=$4 scratch=$5
export PKG_CONFIG_PATH="$3"
mkdir -p "$scratch"
# The flags must be split into words.
# shellcheck disable=SC2046
"$compiler" -std=c++20 $("$pkg_config" --cflags hocket) "$sources/main.cpp" "$sources/unit.cpp" \
  -o "$scratch/consumer" $("$pkg_config" --libs hocket)
"$scratch/consumer"
echo '#include <hocket/impl/src.hpp>' >"$scratch/src.cpp"
# shellcheck disable=SC2046
"$compiler" -std=c++20 -DHOCKET_SEPARATE_COMPILATION $("$pkg_config" --cflags hocket) "$sources/main.cpp" "$sources/unit.cpp" \
  "$scratch/src.cpp" -o "$scratch/compiled_consumer" $("$pkg_config" --libs hocket)
"$scratch/compiled_consumer"
# with_component NAME PACKAGE
with_component() {
  if ! "$pkg_config" --exists "$2"; then
    echo "left out: $2 has no file for pkg-config"
    return
  fi
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 $("$pkg_config" --cflags "hocket-$1") "$sources/with_$1.cpp" -o "$scratch/with_$1" \
    $("$pkg_config" --libs "hocket-$1")
  (cd "$scratch" && "./with_$1")
}
with_component prometheus prometheus-cpp-pull
with_component curl libcurl
with_component archive libarchive
