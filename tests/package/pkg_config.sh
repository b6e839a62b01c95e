#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# pkg_config.sh COMPILER PKG_CONFIG FOLDER_OF_PC_FILES SOURCE_FOLDER SCRATCH_FOLDER
#
# Builds and runs the consumer with only the flags of hocket.pc: header-only, and with separate compilation, in which one
# source contains the compiled part of the library. Then, if prometheus-cpp has such files, with those of
# hocket-prometheus.pc.
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
if "$pkg_config" --exists prometheus-cpp-pull; then
  # shellcheck disable=SC2046
  "$compiler" -std=c++20 $("$pkg_config" --cflags hocket-prometheus) "$sources/with_prometheus.cpp" \
    -o "$scratch/with_prometheus" $("$pkg_config" --libs hocket-prometheus)
  "$scratch/with_prometheus"
else
  echo "left out: prometheus-cpp has no file for pkg-config"
fi
