# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The recipe of a header-only package. UCX comes from the system: <hocket/ucx.hpp> is always packaged, and a program
that includes it must use the component hocket::ucx."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load


class Hocket(ConanFile):
    name = "hocket"
    description = "Collective communication and parallelism as C++20 templates"
    license = "Apache-2.0 WITH LLVM-exception"
    topics = ("collectives", "distributed", "ucx", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    exports_sources = "include/*", "cmake/hocket-compiled*", "LICENSE"
    no_copy_source = True

    def set_version(self):
        config = load(self, os.path.join(self.recipe_folder, "include/hocket/core/config.hpp"))
        self.version = ".".join(
            re.search(rf"HOCKET_VERSION_{part} (\d+)", config).group(1) for part in ("MAJOR", "MINOR", "PATCH")
        )

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("hocket runs on Linux only for now")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(self, "*", os.path.join(self.source_folder, "cmake"), os.path.join(self.package_folder, "cmake"))

    def package_info(self):
        # hocket::compiled, which the user's project builds from installed sources.
        self.cpp_info.set_property("cmake_build_modules", [os.path.join("cmake", "hocket-compiled.cmake")])

        headers = self.cpp_info.components["hocket"]
        headers.set_property("cmake_target_name", "hocket::hocket")
        headers.system_libs = ["pthread"]

        over_ucx = self.cpp_info.components["ucx"]
        over_ucx.set_property("cmake_target_name", "hocket::ucx")
        over_ucx.requires = ["hocket"]
        over_ucx.system_libs = ["ucp", "ucs"]

        for component in (headers, over_ucx):
            component.bindirs = []
            component.libdirs = []
