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

    def read(self, until):
        """The next answer. Raises Failed if the rank has ended, or at the time `until`."""
        while b"\n" not in self.text:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.connection], [], [], left)[0]:
                raise Failed("no answer in time")
            received = self.connection.recv(65536)
            if not received:
                raise Failed("a rank has ended")
            self.text += received
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)


class Processes:
    """Starts the ranks of a peer, and passes commands to them."""

    def __init__(self, peer, ranks, cores):
        self.peer = peer
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
            variables["HOCKET_COMPARE_CORES"] = ",".join(str(core) for core in cores)
            command = [str(each) for each in self.peer.command(self.folder, ranks, crowded)]
            self.process = subprocess.Popen(command, env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)
            self.accept(listener, ranks)

    def accept(self, listener, ranks):
        until = time.monotonic() + START_SECONDS
        listener.settimeout(0.2)
        connected = {}
        while len(connected) < ranks:
            try:
                rank = Rank(listener.accept()[0])
                hello = rank.read(until)
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
            answers = [rank.read(until) for rank in self.ranks]
        except (Failed, OSError) as problem:
            raise Failed(self.reason(f"{problem} ({command})")) from None
        for answer in answers:
            if "error" in answer:
                raise Failed(self.reason(f"{answer['error']} ({command})"))
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
            for pid in self.pids:
                self.signal(os.kill, pid)
            self.signal(os.killpg, self.process.pid)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def signal(send, target):
        try:
            send(target, signal.SIGKILL)
        except ProcessLookupError:
            pass
