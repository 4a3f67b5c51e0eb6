# SPDX-License-Identifier: BSD-3-Clause
"""Two hosts, each a guest with a Soft-RoCE device, on one cable: messages, a partition, the death of one.

It boots both itself, so it is for a machine outside, and runs where ``OFIPY_TWO_GUESTS`` is set.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 240
MODULES = "crc32_generic,rdma_rxe,rdma_ucm,xt_tcpudp"

pytestmark = pytest.mark.skipif(not os.environ.get("OFIPY_TWO_GUESTS"), reason="OFIPY_TWO_GUESTS is not set")


@pytest.fixture(autouse=True)
def _device() -> None:
    """The devices are in the guests."""


def boot(folder: Path, name: str, address: str, *ends: str) -> subprocess.Popen[str]:
    wire = [str(folder / end) for end in ends]
    guest = [
        "--timeout",
        str(SECONDS),
        "--memory",
        "1500",
        "--cpus",
        "1",
        "--modules",
        MODULES,
        "--wire",
        *wire,
    ]
    settings = ["OFIPY_VERBS_ACK_TIMEOUT=14", "OFIPY_VERBS_RETRY_COUNT=6"]
    roce = ["env", "ROCE_INTERFACE=eth0", f"ROCE_ADDRESS={address}", *settings]
    program = ["tests/verbs/soft-roce", "python", "-P", "tests/verbs/host.py", str(folder), name]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.guest", *guest, "--share", str(folder), "--", *roce, *program],
        cwd=ROOT,
        env={**os.environ, "PYTHONSAFEPATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    both = boot(tmp_path, "here", "203.0.113.1", "a", "b"), boot(tmp_path, "there", "203.0.113.2", "b", "a")
    yield both
    for guest in both:
        guest.terminate()
        guest.communicate(timeout=20)


def test_two_hosts(hosts: tuple[subprocess.Popen[str], subprocess.Popen[str]], tmp_path: Path) -> None:
    here, there = hosts
    assert here.stdout is not None
    said = []
    for line in here.stdout:
        said.append(line.strip())
        print(line, end="")
        if line == "kill the other\n":
            # With its machine: no kernel is left that could say goodbye.
            there.kill()
            there.wait()
            (tmp_path / "killed").touch()
    assert here.wait(timeout=20) == 0, said
    read, datagram, partition, together, _, death, receive = said
    assert (read, datagram, together) == (
        "read from afar",
        "datagram another, source known",
        "together again",
    )
    for failure in partition, death:
        assert "TimedOut after" in failure or "ConnectionLost after" in failure or "PeerLost after" in failure
        assert "retry exceeded" in failure
        assert "203.0.113.2" in failure
    assert receive.startswith("receive: recv")
