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

sys.path.insert(0, str(Path(__file__).parent))

from pair_of_guests import boot

SECONDS = 240

pytestmark = pytest.mark.skipif(not os.environ.get("OFIPY_TWO_GUESTS"), reason="OFIPY_TWO_GUESTS is not set")


@pytest.fixture(autouse=True)
def _device() -> None:
    """The devices are in the guests."""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    program = ["python", "-P", "tests/verbs/host.py", str(tmp_path)]
    here, there = (
        boot(tmp_path, name, [*program, name], seconds=SECONDS, memory=1500) for name in ("here", "there")
    )
    both = here, there
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
