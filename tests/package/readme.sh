#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# readme.sh WAY COMPILER REPOSITORY VERSION SCRATCH_FOLDER
#
# Gets hocket as README.md describes, in a clone of the repository, and builds and runs README.md's first program with it.
# The commands, the lines of CMake and the program are those of README.md; only what a reader fills in is replaced. UCX is
# hidden throughout (without_ucx), because the program has threads as ranks. Exits with 77 if a tool is missing.
set -eu
way=$1 repository=$3 version=$4 scratch=$5
export CXX="$2" CMAKE_GENERATOR=Ninja
here=$(cd "$(dirname "$0")" && pwd)
hidden=$here/without_ucx/toolchain.cmake
commit=$(git -C "$repository" rev-parse HEAD)

skip() {
  echo "skipped: $*"
  exit 77
}

# block NAME: prints the code block of README.md after the line `<!-- NAME -->`, with what a reader fills in.
block() {
  awk -v mark="<!-- $1 -->" '
    $0 == mark { found = 1; next }
    !found { next }
    /^```/ { if (inside) exit; inside = 1; next }
    /^    / && !inside { indented = 1; print substr($0, 5); next }
    inside { print; next }
    indented { exit }
    END { if (!inside && !indented) { print "README.md has no code after " mark >"/dev/stderr"; exit 1 } }
  ' "$here/../../README.md" |
    sed -e "s,<repository URL>,$repository,g" -e "s,<commit>,$commit,g" -e "s,PREFIX,$scratch/prefix,g"
}

# run NAME: runs the commands of the block `package: NAME`.
run() {
  block "package: $1" >"commands_$1.sh"
  echo "+ $(cat "commands_$1.sh")"
  # shellcheck disable=SC1090
  . "./commands_$1.sh"
}

# build_program NAME [ARGUMENT...]: builds and runs README.md's program by the lines of CMake of a block.
build_program() {
  mkdir program
  block "from examples/all_reduce_threads.cpp" >program/main.cpp
  {
    printf 'cmake_minimum_required(VERSION 3.25)\nproject(your_project LANGUAGES CXX)\nadd_executable(your_program main.cpp)\n'
    block "$1"
  } >program/CMakeLists.txt
  shift
  cmake -S program -B program/build "$@"
  cmake --build program/build
  program/build/your_program | grep -F '1 + 2 + 3 + 4 = 10'
}

# ---- tools that are missing, or that would change the machine ----------------------------------------------------------

# vcpkg ARGUMENT...: vcpkg can't be installed by a package manager, and needs other hosts.
vcpkg() {
  echo "note: vcpkg itself does not run here: tests/package/vcpkg_install.cmake runs the steps of the port"
  cmake -D version="$version" -D root="$scratch/vcpkg" -P "$here/vcpkg_install.cmake" -- "$@"
}

# sudo apt install ./FILE: unpacks the package instead.
sudo() {
  [ "$1 $2" = "apt install" ]
  dpkg-deb --extract "$3" "$scratch/root"
}

# ---- the ways ----------------------------------------------------------------------------------------------------------

rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

case $way in
  fetch_content)
    export CMAKE_TOOLCHAIN_FILE="$hidden"
    build_program "package: fetch_content"
    ;;
  install)
    export CMAKE_TOOLCHAIN_FILE="$hidden"
    run clone
    run install
    build_program "package: find_package" -DCMAKE_PREFIX_PATH="$scratch/prefix"
    ;;
  vcpkg)
    export CMAKE_TOOLCHAIN_FILE="$hidden"
    run clone
    run vcpkg
    build_program "package: find_package" -DCMAKE_PREFIX_PATH="$scratch/vcpkg/installed/x64-linux"
    ;;
  debian)
    command -v dpkg-deb >/dev/null || skip "no dpkg-deb here, which unpacks Debian packages"
    export CMAKE_TOOLCHAIN_FILE="$hidden"
    run clone
    run debian
    build_program "package: find_package" -DCMAKE_PREFIX_PATH="$scratch/root/usr"
    # The package is for every architecture, and needs no other.
    package=hocket/build/package/libhocket-dev_${version}_all.deb
    [ "$(dpkg-deb --field "$package" Architecture)" = all ]
    [ -z "$(dpkg-deb --field "$package" Depends)" ]
    if dpkg-deb --contents "$package" | grep -v -E '^d|/usr/include/hocket/|/usr/share/'; then
      echo "the package has files other than headers and the files that find them" >&2
      exit 1
    fi
    ;;
  conan)
    case $(conan --version 2>&1 || true) in
      "Conan version 2."*) ;;
      *) skip "no Conan 2 here (pip install conan)" ;;
    esac
    export CONAN_HOME="$scratch/home"
    conan profile detect
    conan remote disable '*'
    printf '%s\n' 'tools.cmake.cmaketoolchain:generator=Ninja' "tools.cmake.cmaketoolchain:user_toolchain=[\"$hidden\"]" \
      >"$CONAN_HOME/global.conf"
    run clone
    git -C hocket remote set-url origin https://name:password@localhost/hocket.git
    run conan # also builds and runs the program, by test_package
    # The address of the package is that of the clone, without a password.
    conan graph info --requires="hocket/$version" >info.log
    grep 'homepage: https://localhost/hocket$' info.log
    # A compiler that is too old must be rejected with the reason.
    if conan install --requires="hocket/$version" --settings=compiler.version=11 >too_old.log 2>&1; then
      echo "Conan installs hocket for a compiler that is too old" >&2
      exit 1
    fi
    grep 'hocket needs C++20 as .* newer have it, but the profile has .* 11' too_old.log
    # CMakeConfigDeps is the successor of CMakeDeps, which test_package uses.
    if conan install --requires="hocket/$version" --generator=CMakeConfigDeps --generator=CMakeToolchain \
      --output-folder=successor >successor.log 2>&1; then
      cmake -S hocket/test_package -B successor/build -DCMAKE_TOOLCHAIN_FILE="$scratch/successor/conan_toolchain.cmake" \
        -DCMAKE_BUILD_TYPE=Release
    else
      grep "Invalid generator 'CMakeConfigDeps'" successor.log # an older Conan
    fi
    # Without CMake, the package of threads must not need UCX, either.
    conan install --requires="hocket/$version" --generator=PkgConfigDeps --output-folder=found
    grep -e '-lucp' found/hocket-ucx.pc
    grep -e '-lprometheus-cpp-pull' found/hocket-prometheus.pc
    grep -e '-lcurl' found/hocket-curl.pc
    grep -e '-larchive' found/hocket-archive.pc
    if grep -e 'hocket-ucx' -e '-luc' -e 'prometheus' -e '-lcurl' -e '-larchive' found/hocket.pc; then
      echo "hocket.pc of Conan needs UCX, prometheus-cpp, libcurl or libarchive" >&2
      exit 1
    fi
    ;;
esac
