# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes of one peer, which sleep while other peers are measured. Every wait has a timeout."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BOARD_BYTES = 64 * 128 + 64 * 4096 * 8  # of bench/peers/board.hpp
START_SECONDS = 60


class Failed(Exception):
    """The reason why the processes of a peer can't be used any more."""


class Rank:
    """The connection to one rank."""

    def __init__(self, connection):
        self.connection = connection
        self.text = b""

    def receive(self):
        """Receives what has arrived. Returns an answer if one is complete, otherwise None."""
        received = self.connection.recv(65536)
        if not received:
            raise Failed("a rank has ended")
        self.text += received
        if b"\n" not in self.text:
            return None
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)


def answers_of(ranks, until):
    """One answer of each rank. Raises Failed if a rank reports an error or has ended, or at the time `until`."""
    answers = {}
    while len(answers) < len(ranks):
        waiting = {rank.connection: number for number, rank in enumerate(ranks) if number not in answers}
        ready = select.select(list(waiting), [], [], max(0, until - time.monotonic()))[0]
        if not ready:
            raise Failed(f"no answer of rank {', '.join(str(number) for number in waiting.values())} in time")
        for connection in ready:
            number = waiting[connection]
            try:
                answer = ranks[number].receive()
            except (Failed, OSError):
                raise Failed(f"rank {number} has ended") from None
            if answer is not None and "error" in answer:
                raise Failed(f"rank {number}: {answer['error']}")
            if answer is not None:
                answers[number] = answer
    return [answers[number] for number in range(len(ranks))]


class Processes:
    """Starts the ranks of a peer, and passes commands to them."""

    def __init__(self, peer, ranks, cores, fault=None):
        self.peer = peer
        self.fault = fault
        self.ranks = []
        self.pids = []
        self.version = ""
        # In memory if possible: writing dirty pages of a shared file to disk would disturb the ranks.
        self.folder = tempfile.mkdtemp(prefix="compare.", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.process = None
        self.log = Path(self.folder, "log")
        try:
            self.start(ranks, cores)
        except BaseException:
            self.kill()
            raise

    def start(self, ranks, cores):
        with open(Path(self.folder, "board"), "wb") as board:
            board.truncate(BOARD_BYTES)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listener, open(self.log, "wb") as log:
            listener.bind(str(Path(self.folder, "socket")))
            listener.listen(ranks)
            crowded = ranks > len(cores)
            variables = {key: str(value) for key, value in self.peer.variables(crowded).items()}
            variables.update(self.peer.files_in(self.folder))
            variables["HOCKET_COMPARE_CORES"] = ",".join(str(core) for core in cores)
            if self.fault:
                variables["HOCKET_COMPARE_FAULT"] = self.fault
            command = [str(each) for each in self.peer.command(self.folder, ranks, crowded)]
            self.process = subprocess.Popen(
                command,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            self.accept(listener, ranks)

    def accept(self, listener, ranks):
        until = time.monotonic() + START_SECONDS
        listener.settimeout(0.2)
        connected = {}
        while len(connected) < ranks:
            try:
                rank = Rank(listener.accept()[0])
                hello = answers_of([rank], until)[0]
                connected[hello["rank"]] = rank
                self.pids.append(hello["process"])
                self.version = hello["version"]
            except socket.timeout:
                if self.process.poll() is not None:
                    raise Failed(self.reason("its processes ended at the start")) from None
                if time.monotonic() > until:
                    raise Failed(self.reason(f"no connection within {START_SECONDS} s")) from None
        self.ranks = [connected[rank] for rank in range(ranks)]

    def ask(self, command, seconds):
        """Sends a command to all ranks and returns the answer of rank 0, with the wrong elements of all ranks."""
        try:
            for rank in self.ranks:
                rank.connection.sendall(command.encode() + b"\n")
            until = time.monotonic() + seconds
            answers = answers_of(self.ranks, until)
        except (Failed, OSError) as problem:
            raise Failed(self.reason(f"{problem} ({command})")) from None
        wrong = sum(answer.get("wrong", 0) for answer in answers)
        return {**answers[0], "wrong": wrong}

    def reason(self, text):
        """Adds the last line that the processes have printed."""
        try:
            lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        except OSError:
            lines = []
        lines = [line for line in lines if any(c.isalpha() for c in line)]
        return f"{text}; its last line: {lines[-1][:200]}" if lines else text

    def stop(self):
        """Ends the processes, by force if they do not end."""
        try:
            for rank in self.ranks:
                rank.connection.sendall(b"quit\n")
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self):
        for rank in self.ranks:
            rank.connection.close()
        if self.process is not None and self.process.poll() is None:
            left_behind = self.shared_files()
            for pid in self.pids:
                self.signal(os.kill, pid)
            try:  # launchers remove their files when their processes have ended
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                pass
            self.signal(os.killpg, self.process.pid)
            self.process.wait()
            for each in left_behind:
                each.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def shared_files(self):
        """The files of shared memory that the ranks have mapped, which they can't remove when they are killed."""
        found = set()
        for pid in self.pids:
            try:
                maps = Path(f"/proc/{pid}/maps").read_text()
            except OSError:
                continue
            found.update(line.split(maxsplit=5)[5] for line in maps.splitlines() if " /dev/shm/" in line)
        return [Path(each) for each in found if not each.endswith(" (deleted)")]

    @staticmethod
    def signal(send, target):
        try:
            send(target, signal.SIGKILL)
        except ProcessLookupError:
            pass
