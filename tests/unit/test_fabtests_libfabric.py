# SPDX-License-Identifier: BSD-3-Clause
"""Running libfabric's programs: a stand-in with their command line takes their place."""

import os
import sys
from pathlib import Path

import pytest

from fabtests.compare.case import Cell
from fabtests.compare.cases import CASES
from fabtests.compare.entrants import LIBFABRIC, Entrant
from fabtests.compare.field import Field
from fabtests.compare.libfabric import (
    BANDWIDTH,
    PINGPONG,
    library_version,
    read_row,
    run_program,
)
from fabtests.compare.programs import ProgramError
from fabtests.compare.runner import run_case
from fabtests.compare.windows import ShmBandwidth
from ofipy.pingpong.pipe import pick_cores

STAND_IN = """#!{python}
import os, socket, sys

arguments = dict(zip(sys.argv[1:], sys.argv[2:]))
port = int(next(each for each in sys.argv if each.startswith("-E="))[3:])
if arguments["-S"] == "13":
    sys.exit("no such size")
if sys.argv[-1] == "127.0.0.1":
    if arguments["-S"] == "14":
        sys.exit("client broke")
    with socket.create_connection(("127.0.0.1", port)) as server:
        core = int(server.recv(16))
    print("---")
    print("- {{ xfer_size: 8, iterations:", arguments["-I"] + ", usec/xfer: 0.250000, MB/sec: 32.0, server:",
          str(core) + ", client:", str(min(os.sched_getaffinity(0))) + " }}")
else:
    with socket.create_server(("127.0.0.1", port)) as listener:
        client, _ = listener.accept()
        with client:
            client.sendall(str(min(os.sched_getaffinity(0))).encode())
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (PINGPONG, BANDWIDTH):
        file = tmp_path / name
        file.write_text(STAND_IN.format(python=sys.executable))
        file.chmod(0o755)
    info = tmp_path / "fi_info"
    info.write_text("#!/bin/sh\necho 'fi_info: 2.6.0'\necho 'libfabric: 2.6.0'\necho 'libfabric api: 2.6'\n")
    info.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


def run(size: int) -> dict[str, float]:
    return run_program(PINGPONG, provider="shm", size=size, iterations=7, cores=pick_cores())


def test_client_and_server_run_on_their_cores() -> None:
    before = os.sched_getaffinity(0)
    row = run(8)
    assert row["usec/xfer"] == 0.25
    assert row["iterations"] == 7
    assert (row["client"], row["server"]) == pick_cores()
    assert os.sched_getaffinity(0) == before


@pytest.mark.parametrize(("size", "message"), [(13, "no such size"), (14, "client broke")])
def test_a_failing_program_is_an_error_with_its_words(size: int, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run(size)


def test_the_library_tells_its_version() -> None:
    assert library_version() == "2.6.0"


def test_output_without_a_row_is_an_error() -> None:
    with pytest.raises(ProgramError, match="no result"):
        read_row("nothing\n")


def test_the_programs_are_the_peer_where_the_bridge_finds_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_LIBFABRIC", "/nonexistent/libfabric.so.1")
    peer = Entrant(LIBFABRIC, "shm")
    with Field(cores=pick_cores()) as field:
        assert field.has(peer)
        assert field.versions[peer] == f"2.6.0 ({PINGPONG}, {BANDWIDTH})"
        assert CASES["shm-latency"].run(field, Cell(peer, "plain", 8), 3).value == pytest.approx(0.25)
        assert CASES["shm-bandwidth"].run(field, Cell(peer, "plain", 65536), 3).value == pytest.approx(32.0)


class OnlyPrograms(ShmBandwidth):
    modes = ("array-rewritten", "array")
    sizes = (65536,)
    peers = (Entrant(LIBFABRIC, "shm"),)


def test_what_the_programs_cannot_do_is_left_out_of_that_row_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_LIBFABRIC", "/nonexistent/libfabric.so.1")
    case = OnlyPrograms()
    with Field(cores=pick_cores()) as field:
        rewritten, plain = run_case(case, case.groups(), field, rounds=1, step=lambda _: None)
    assert set(rewritten.peers) == set()
    assert set(plain.peers) == {"libfabric"}
