# SPDX-License-Identifier: BSD-3-Clause
"""Executors and keys: what unpickles is open to nobody but those with the key, or of the same user."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import executor_tasks as tasks
import pytest

import ofipy
from ofipy.executor import wire
from ofipy.executor.wire import Kind, To
from ofipy.executor.worker import Worker

pytestmark = pytest.mark.timeout(120)

WORKER = (sys.executable, "-m", "ofipy", "worker")


def key_file(folder: Path, name: str, byte: bytes) -> str:
    path = folder / name
    path.touch(mode=0o600)
    path.write_bytes(byte * 32)
    return str(path)


@pytest.mark.parametrize("provider", ["tcp", "link"])
def test_without_a_key_no_network(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFIPY_PROVIDER", provider)
    with pytest.raises(ofipy.ConfigError, match="without a key") as caught:
        ofipy.Executor(listen="127.0.0.1:0")
    assert "ofipy key new" in str(caught.value)


def test_within_a_host_no_key_is_needed() -> None:
    with ofipy.Executor(1, listen=0) as executor:
        assert executor.address.connects_only
        assert executor.submit(tasks.square, 2).result(timeout=60) == 4


def test_a_provider_without_proof_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fabric = next(
        (info for info in ofipy.getinfo(ep_type="rdm") if info.peer_proof is ofipy.PeerProof.NONE), None
    )
    if fabric is None:
        pytest.skip("a libfabric is not installed")
    monkeypatch.setenv("OFIPY_PROVIDER", fabric.provider)
    with pytest.raises(ofipy.AccessDenied, match="prove no key"):
        ofipy.Executor(1)
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", key_file(tmp_path, "key", b"k"))
    with pytest.raises(ofipy.AccessDenied, match="do not prove it"):
        ofipy.Executor(1)


def test_workers_with_the_key_and_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFIPY_PROVIDER", "tcp")
    monkeypatch.setenv("OFIPY_AUTH_KEY_FILE", key_file(tmp_path, "key", b"k"))
    with ofipy.Executor(listen=f"{socket.gethostbyname('localhost')}:0") as executor:
        for other in ("", key_file(tmp_path, "other", b"o")):
            stranger = subprocess.run(
                [*WORKER, str(executor.address)],
                env=os.environ | {"OFIPY_AUTH_KEY_FILE": other},
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert stranger.returncode == 1
            assert "key" in stranger.stderr
            assert executor.num_workers == 0
        future = executor.submit(tasks.square, 5)
        member = subprocess.Popen([*WORKER, str(executor.address)])
        try:
            assert future.result(timeout=60) == 25
        finally:
            executor.shutdown()
            assert member.wait(timeout=60) == 0


def test_a_worker_reads_nothing_of_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever poses as an executor is asked for proof, too."""
    monkeypatch.setenv("OFIPY_PROVIDER", "tcp")
    with (
        ofipy.open(node="127.0.0.1") as false_executor,
        pytest.raises(ofipy.AccessDenied, match="has proven no key"),
    ):
        Worker(str(false_executor.address))


def test_a_door_survives_what_is_no_worker() -> None:
    with ofipy.Executor(1, listen=0) as executor, ofipy.open() as ep:
        door = ep.insert(executor.address, wait=30)
        for nonsense in (b"", b"\xff", b"x" * 4096):
            ep.tsend(nonsense, door, tag=wire.tag(To.DOOR, Kind.HELLO)).wait(timeout=30)
        refused = ep.trecv(door, tag=wire.tag(To.WORKER, Kind.REFUSED)).wait(timeout=30)
        assert b"version" in refused.data
        # A worker that answers what nobody has asked is dismissed, and its task is another one's.
        ep.tsend(wire.pack_hello("liar"), door, tag=wire.tag(To.DOOR, Kind.HELLO)).wait(timeout=30)
        ep.trecv(door, tag=wire.tag(To.WORKER, Kind.WELCOME)).wait(timeout=30)
        ep.tsend(b"no pickle", door, tag=wire.tag(To.EXECUTOR, Kind.RESULT, 7)).wait(timeout=30)
        ep.trecv(door, tag=wire.tag(To.WORKER, Kind.STOP)).wait(timeout=30)
        assert executor.submit(tasks.square, 6).result(timeout=60) == 36
