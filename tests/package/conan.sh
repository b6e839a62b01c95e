#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# conan.sh COMPILER CONAN PROJECT_FOLDER CONSUMER_FOLDER SCRATCH_FOLDER
#
# Makes the package with Conan, in a separate Conan home, and builds and runs the consumer with it.
set -eu
compiler=$1 conan=$2 project=$3 consumer=$4 scratch=$5

rm -rf "$scratch"
mkdir -p "$scratch"
export CONAN_HOME="$scratch/home" CXX="$compiler"
"$conan" profile detect
"$conan" create "$project" --no-remote -s compiler.cppstd=20
"$conan" install --requires="hocket/[*]" --no-remote -g CMakeDeps -g CMakeToolchain -s compiler.cppstd=20 \
  --output-folder="$scratch/found"
cmake -S "$consumer" -B "$scratch/build" -G Ninja -DHOCKET_BY=find_package -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_TOOLCHAIN_FILE="$scratch/found/conan_toolchain.cmake"
cmake --build "$scratch/build"
ctest --test-dir "$scratch/build" --output-on-failure --no-tests=error
