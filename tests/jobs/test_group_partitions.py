# SPDX-License-Identifier: BSD-3-Clause
"""Groups of processes of which some cannot be reached: who is expelled, and who is too few to decide.

A stopped process answers nobody. One that was not connected before is given up after the time of a connection.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest
from started import wait_until

OBEDIENT = Path(__file__).with_name("obedient.py")
# Seconds after which a process that does not answer is given up.
CONNECT_TIMEOUT = "2"
SECONDS = 120


class Team:
    """Processes of a job, each driven by lines over a connection."""

    def __init__(self, server: socket.socket, size: int) -> None:
        self._lines: list[TextIO] = [io.StringIO()] * size
        self._pids = [0] * size
        server.settimeout(SECONDS)
        for _ in range(size):
            connection, _ = server.accept()
            connection.settimeout(SECONDS)
            lines = connection.makefile("rw")
            connection.close()  # the file keeps it
            rank, pid = map(int, lines.readline().split())
            self._lines[rank], self._pids[rank] = lines, pid

    def ask(self, ranks: Sequence[int], what: str) -> list[str]:
        """Say the same to all of them, and read the answer of each."""
        for rank in ranks:
            print(what, file=self._lines[rank], flush=True)
        return [self._lines[rank].readline().strip() for rank in ranks]

    def stop(self, ranks: Sequence[int]) -> None:
        """They do nothing from when this returns."""
        for rank in ranks:
            os.kill(self._pids[rank], signal.SIGSTOP)
        wait_until(lambda: all(self._is_stopped(rank) for rank in ranks))

    def _is_stopped(self, rank: int) -> bool:
        return Path(f"/proc/{self._pids[rank]}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def go_on(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            os.kill(self._pids[rank], signal.SIGCONT)

    def end(self) -> None:
        self.go_on(range(len(self._pids)))
        for lines in self._lines:
            lines.close()


@contextmanager
def start_team(folder: Path, provider: str, hosts: Sequence[int]) -> Iterator[Team]:
    path = str(folder / "control")
    command = (sys.executable, "-m", "ofipy", "run", "--keep-going", "-n", str(len(hosts)))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen(len(hosts))
        job = subprocess.Popen(
            [*command, sys.executable, str(OBEDIENT), path, provider, ",".join(map(str, hosts))],
            env=os.environ | {"OFIPY_CONNECT_TIMEOUT": CONNECT_TIMEOUT},
        )
        try:
            team = Team(server, len(hosts))
            try:
                yield team
            finally:
                team.end()
            assert job.wait(SECONDS) == 0
        finally:
            job.kill()
            job.wait()


@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize("victim", [0, 3], ids=["the-coordinator", "another"])
def test_a_member_that_was_stopped_is_expelled(provider: str, victim: int, tmp_path: Path) -> None:
    others = [rank for rank in range(4) if rank != victim]
    with start_team(tmp_path, provider, [0] * 4) as members:
        members.stop([victim])
        assert members.ask(others, "agree") == [f"agreed True ({victim},)"] * 3
        members.go_on([victim])
        (line,) = members.ask([victim], "agree")
        assert line.startswith(f"broken ({victim},)"), line
        assert f"the other members take rank {victim}, which is this one, for dead" in line
        # It stays out, and disturbs nobody.
        assert members.ask([victim], "allreduce")[0].startswith(f"broken ({victim},)")
        assert members.ask(others, "shrink") == [f"rank {rank} of 3" for rank in range(3)]
        assert members.ask(others, "allreduce") == ["sum 3"] * 3


@pytest.mark.parametrize("hosts", [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]], ids=["the-lower-ranks", "the-higher"])
def test_a_minority_of_several_hosts_decides_nothing(hosts: list[int], tmp_path: Path) -> None:
    lesser = int(hosts.count(1) < hosts.count(0))
    few = [rank for rank, host in enumerate(hosts) if host == lesser]
    most = [rank for rank, host in enumerate(hosts) if host != lesser]
    with start_team(tmp_path, "tcp", hosts) as members:
        members.stop(most)
        for line in members.ask(few, "agree"):
            assert "minority: at most half of the members can be reached" in line, line
        members.go_on(most)
        # Those that could not agree have left.
        assert members.ask(most, "agree") == [f"agreed True {tuple(few)}"] * 3
        assert members.ask(most, "shrink") == [f"rank {rank} of 3" for rank in range(3)]
        assert members.ask(most, "allreduce") == ["sum 3"] * 3
        assert all("minority" in line for line in members.ask(few, "allreduce"))


def test_members_of_one_host_need_no_majority(tmp_path: Path) -> None:
    with start_team(tmp_path, "tcp", [0] * 5) as members:
        members.stop([0, 1, 2])
        assert members.ask([3, 4], "agree") == ["agreed True (0, 1, 2)"] * 2
