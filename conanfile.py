# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recipe of a package of headers, for Conan 2.

The package contains hocket's own CMake package, so its targets are the same as those of an installation: hocket::hocket
needs C++20 and threads, whatever `compiler.cppstd` of the profile is. hocket::ucx exists if UCX is found on the system, and
hocket::prometheus, hocket::curl and hocket::archive, for projects that name these components, if prometheus-cpp, libcurl
and libarchive are.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanException, ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, update_conandata
from conan.tools.scm import Git, Version

oldest_compilers = {"gcc": "12", "clang": "16"}


class Hocket(ConanFile):
    name = "hocket"
    description = "Collective communication and parallelism as C++20 templates"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("collectives", "distributed", "ucx", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "CMakeLists.txt", "LICENSE", "cmake/*", "include/*"
    no_copy_source = True

    def init(self):
        self.url = self.homepage = (self.conan_data or {}).get("url")

    def set_version(self):
        config = load(self, os.path.join(self.recipe_folder, "include/hocket/core/config.hpp"))
        self.version = ".".join(
            re.search(rf"HOCKET_VERSION_{part} (\d+)", config).group(1) for part in ("MAJOR", "MINOR", "PATCH")
        )

    def export(self):
        """Records where the sources come from, if that is a web page: init() reads it."""
        try:
            origin = Git(self, self.recipe_folder).get_remote_url() or ""
        except ConanException:  # this is no clone
            return
        page = re.fullmatch(r"(https://)(?:[^@/]*@)?(.+?)(?:\.git)?/?", origin)
        if page:
            update_conandata(self, {"url": page.group(1) + page.group(2)})

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration(f"hocket runs on Linux only, but the profile is for {self.settings.os}")
        compiler, version = str(self.settings.compiler), str(self.settings.compiler.version)
        oldest = oldest_compilers.get(compiler)
        if oldest and Version(version) < oldest:
            raise ConanInvalidConfiguration(
                f"hocket needs C++20 as {compiler} {oldest} and newer have it, but the profile has {compiler} {version}"
            )

    def layout(self):
        cmake_layout(self)

    def package_id(self):
        self.info.clear()

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("BUILD_TESTS", "BUILD_EXAMPLES", "BUILD_BENCHMARKS", "BUILD_TOOLS", "WITH_UCX"):
            toolchain.cache_variables[f"HOCKET_{part}"] = False
        toolchain.generate()

    def build(self):
        CMake(self).configure()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # the package has hocket-config.cmake
        headers = self.cpp_info.components["hocket"]
        # CMakeConfigDeps reads the folder of the package, CMakeToolchain those of components.
        self.cpp_info.builddirs = headers.builddirs = [os.path.join("share", "cmake", "hocket")]

        # For generators other than CMake's.
        headers.set_property("pkg_config_name", "hocket")
        headers.system_libs = ["pthread"]
        over_ucx = self.cpp_info.components["over_ucx"]
        over_ucx.set_property("pkg_config_name", "hocket-ucx")
        over_ucx.requires = ["hocket"]
        over_ucx.system_libs = ["ucp", "ucs"]
        with_prometheus = self.cpp_info.components["with_prometheus"]
        with_prometheus.set_property("pkg_config_name", "hocket-prometheus")
        with_prometheus.requires = ["hocket"]
        with_prometheus.system_libs = ["prometheus-cpp-pull", "prometheus-cpp-core"]
        with_curl = self.cpp_info.components["with_curl"]
        with_curl.set_property("pkg_config_name", "hocket-curl")
        with_curl.requires = ["hocket"]
        with_curl.system_libs = ["curl"]
        with_archive = self.cpp_info.components["with_archive"]
        with_archive.set_property("pkg_config_name", "hocket-archive")
        with_archive.requires = ["hocket"]
        with_archive.system_libs = ["archive"]
        for component in (headers, over_ucx, with_prometheus, with_curl, with_archive):
            component.bindirs = []
            component.libdirs = []
