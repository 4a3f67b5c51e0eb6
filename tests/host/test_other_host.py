# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy devinfo --host`` and ``ofipy counters --host``: the devices of another host, told by its server."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ofipy.cli.key import new_key
from ofipy.doctor.machine import pack_machine
from ofipy.doctor.peer.service import DoctorServer
from ofipy.doctor.peer.wire import ARCHIVE, ASK
from ofipy.host.tree import Tree
from ofipy.ping.place import Place
from ofipy.ping.server import open_server
from ofipy.ping.wire import LARGEST
from tests.host import trees
from tests.host.servers import here, run_command, serving
from tests.ports import free_port


class Machine:
    """A server of a recorded machine, in a thread of this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        place = Place("127.0.0.1", free_port())
        self.host = str(place)
        self._ended = threading.Event()
        self._server = DoctorServer(open_server(place), place.host, Tree(str(root)))
        self._thread = threading.Thread(target=self._server.serve, args=(self._ended.is_set,))
        self._thread.start()

    def close(self) -> None:
        """End the server."""
        self._ended.set()
        self._thread.join()
        self._server.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """An InfiniBand device, one for RoCE with flow control, one of software."""
    server = Machine(trees.together().write(tmp_path / "machine"))
    yield server
    server.close()


@pytest.mark.parametrize(
    "words",
    [
        ["devinfo"],
        ["devinfo", "mlx5_10"],
        ["devinfo", "--json"],
        ["counters", "--errors", "--nonzero"],
        ["counters", "mlx5_10/1"],
        ["counters", "--json"],
    ],
    ids=" ".join,
)
def test_another_host_looks_like_its_own_recording(machine: Machine, words: list[str]) -> None:
    there = run_command(*words, "--host", machine.host)[0]
    own = run_command(*words, "--root", str(machine.root))[0]
    assert there == own
    assert len(own) > 100


def test_each_look_is_new(machine: Machine) -> None:
    words = ["counters", "rxe0/1", "--watch", "0.05", "-n", "1000000", "--json", "--host", machine.host]
    file = next(machine.root.glob("sys/devices/virtual/infiniband/rxe0/ports/1/hw_counters/sent_pkts"))
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "ofipy", *words], stdout=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stdout is not None
        watcher.stdout.readline()
        file.write_text("1250\n")
        for line in watcher.stdout:
            rows: list[dict[str, Any]] = json.loads(line)["devices"][0]["ports"][0]["counters"]
            if [row["delta"] for row in rows if row["name"] == "sent_pkts"] == [250]:
                break
        watcher.terminate()
    assert watcher.returncode != 0  # it was still watching


def test_this_host_over_its_server() -> None:
    with serving("doctor", "--serve", here()) as server:
        document = json.loads(run_command("counters", "--json", "--host", server.place)[0])
    own = json.loads(run_command("counters", "--json")[0])
    assert [row["name"] for row in document["tcp"]] == [row["name"] for row in own["tcp"]]
    assert document["tcp"]


def test_an_archive_has_what_both_commands_read(tmp_path: Path) -> None:
    root = trees.together().write(tmp_path / "machine")
    (tmp_path / "packed.tar.gz").write_bytes(pack_machine(str(root)))
    for words in (["devinfo", "--json"], ["counters", "--json"]):
        packed = run_command(*words, "--root", str(tmp_path / "packed.tar.gz"))[0]
        assert packed == run_command(*words, "--root", str(root))[0]


class TestRefusals:
    def test_nobody_is_there(self) -> None:
        place = here()
        said = run_command("counters", "--host", place, code=3)[1]
        assert "nobody listens" in said or "no server answers" in said

    def test_a_server_of_pings_alone(self) -> None:
        with serving("ping", "--serve", here()) as server:
            assert (
                "ofipy doctor --serve is meant" in run_command("devinfo", "--host", server.place, code=1)[1]
            )

    def test_another_key(self, tmp_path: Path) -> None:
        keys = [str(tmp_path / name) for name in ("one", "other")]
        for key in keys:
            new_key(Path(key))
        tcp = {"OFIPY_PROVIDER": "tcp"}  # over shm the kernel tells the user, and no key is needed
        with serving("doctor", "--serve", here(), OFIPY_AUTH_KEY_FILE=keys[0], **tcp) as server:
            words = ["devinfo", "--host", server.place]
            assert "key" in run_command(*words, code=1, OFIPY_AUTH_KEY_FILE=keys[1], **tcp)[1]
            again = ["--json", "--watch", "0.05", "-n", "1"]
            printed, said = run_command(*words, *again, OFIPY_AUTH_KEY_FILE=keys[0], **tcp)
            assert json.loads(printed.splitlines()[0])["schema"] == 1
            assert "watching" in said

    def test_usage(self) -> None:
        assert "give one of them" in run_command("devinfo", "--root", "/", "--host", "node7", code=2)[1]
        assert "--watch" in run_command("devinfo", "-n", "2", code=2)[1]
        assert "a host is missing" in run_command("counters", "--host", ":19229", code=2)[1]


def large_archive(bytes_of_files: int) -> bytes:
    """A small archive with large files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for number in range(bytes_of_files >> 20):
            member = tarfile.TarInfo(f"sys/{number}")
            member.size = 1 << 20
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return packed.getvalue()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ARCHIVE + b"no archive", "no tar archive that can be read"),
        (ARCHIVE + gzip.compress(b"\x1f" * 4096), "no tar archive that can be read"),
        (ARCHIVE + large_archive(40 << 20), "more than 32 MiB"),
        (ASK + b'{"error": "too busy\\u001b[2J"}', "too busy?[2J"),
        (ASK + b"{}", "the server sent no archive"),
        (b"Q", "no question and no answer"),
    ],
    ids=["text", "gzip", "large", "error", "nothing", "strange"],
)
def test_servers_that_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: bytes, says: str) -> None:
    assert len(answer) <= LARGEST
    monkeypatch.setattr(
        DoctorServer,
        "_tell_machine",
        lambda server, peer, said: server._send(peer, answer),
    )
    server = Machine(trees.rxe().write(tmp_path / "machine"))
    try:
        assert says in run_command("counters", "--host", server.host, code=1)[1]
    finally:
        server.close()
