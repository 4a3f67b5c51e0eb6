# SPDX-License-Identifier: BSD-3-Clause
"""PMI-1 against a launcher of the test's own: long values in parts, odd answers, one that is gone or silent."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

import ofipy
from ofipy.jobs.launcher import Deadline
from ofipy.jobs.pmi1 import Pmi1, find
from tests.ports import free_port

ROOM = 1024
Values = dict[str, str]


class Launcher:
    """Serves one process; there is nobody to wait for at its barrier."""

    def __init__(self, *, names_of_slurm: bool = False) -> None:
        self.values: Values = {}
        self.finalized = False
        self._names_of_slurm = names_of_slurm
        self.socket, self.client = socket.socketpair()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self.socket.makefile("rw") as lines:
            for line in lines:
                asked = dict(pair.split("=", 1) for pair in line.split())
                lines.write(self._answer(asked) + "\n")
                lines.flush()

    def _answer(self, asked: dict[str, str]) -> str:
        match asked["cmd"]:
            case "init":
                return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
            case "get_maxes":
                return f"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max={ROOM} rc=0"
            case "get_my_kvsname":
                name = "GETMYKVSNAMERESP_CMD" if self._names_of_slurm else "my_kvsname"
                return f"cmd={name} kvsname=space rc=0"
            case "put":
                assert len(asked["value"]) < ROOM
                assert len(asked["key"]) < 64
                self.values[asked["key"]] = asked["value"]
                return "cmd=put_result rc=0 msg=success"
            case "get" if asked["key"] in self.values:
                return f"cmd=get_result rc=0 msg=success value={self.values[asked['key']]}"
            case "get":
                return "cmd=get_result rc=-1 msg=key_not_found"
            case "barrier_in":
                return "cmd=barrier_out rc=0"
            case "finalize":
                self.finalized = True
                return "cmd=finalize_ack rc=0"
        raise AssertionError(asked)

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.socket.close()
        self.client.close()


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.mark.parametrize("length", [0, 1, 700, 761, 762, 763, 1524, 5000])
def test_long_values_go_in_parts(launcher: Launcher, length: int) -> None:
    pmi = Pmi1(launcher.client, Deadline(5), None, rank=0, size=1)
    value = os.urandom(length)
    assert pmi.fence({"0": value}, ["0"], Deadline(5)) == {"0": value}
    assert len(launcher.values) == max(1, -(-len(value) * 4 // 3 // 1016))
    pmi.close()
    pmi.close()
    assert launcher.finalized


def test_names_of_answers_do_not_matter() -> None:
    launcher = Launcher(names_of_slurm=True)
    pmi = Pmi1(launcher.client, Deadline(5), None, rank=0, size=1)
    assert pmi.fence({"0": b"x"}, ["0"], Deadline(5)) == {"0": b"x"}
    launcher.close()


def test_a_value_that_nobody_put(launcher: Launcher) -> None:
    pmi = Pmi1(launcher.client, Deadline(5), None, rank=0, size=2)
    with pytest.raises(ofipy.NotConnected, match=r"PMI_FD.*key_not_found"):
        pmi.fence({}, ["1"], Deadline(5))


def test_a_launcher_that_is_gone() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(ofipy.NotConnected, match="PMI_FD or PMI_PORT"):
        Pmi1(ours, Deadline(5), None, rank=0, size=1)


def test_a_launcher_that_says_nothing() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ofipy.TimedOut, match="OFIPY_JOB_TIMEOUT"):
        Pmi1(ours, Deadline(0.2), None, rank=0, size=1)


def test_an_answer_without_an_end() -> None:
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=lambda: [theirs.sendall(b"x" * 4096) for _ in range(17)])
    thread.start()
    with ours, theirs, pytest.raises(ofipy.NotConnected, match="no end"):
        Pmi1(ours, Deadline(5), None, rank=0, size=1)
    thread.join()


def test_nobody_at_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("PMI_PORT", f"127.0.0.1:{port}")
    monkeypatch.setenv("PMI_ID", "0")
    found = find()
    assert found is not None
    with pytest.raises(ofipy.NotConnected, match=f"PMI_PORT=127.0.0.1:{port}"):
        found.join(Deadline(5), None)
