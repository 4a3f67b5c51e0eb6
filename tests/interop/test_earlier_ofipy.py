# SPDX-License-Identifier: BSD-3-Clause
"""This ofipy and one that was built from an earlier commit, over each of our wires."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(TREE))

from tests.commits import build, check_out, commit_of  # noqa: E402

EARLIER = {
    "before native/meet": "392d9b1",  # whose providers decided themselves what it decides now
    "before identities": "4729f12",  # whose endpoints do not say which ones they are
}
SIDE = Path(__file__).with_name("earlier.py")
TIMEOUT = 60

pytestmark = pytest.mark.skipif(
    not os.environ.get("OFIPY_STRESS"),
    reason="builds an earlier ofipy: in the full profile alone (OFIPY_STRESS)",
)


@pytest.fixture(scope="module", params=EARLIER.values(), ids=EARLIER.keys())
def earlier(request: pytest.FixtureRequest) -> Path:
    """The interpreter that has it."""
    commit = commit_of(request.param)
    return build(commit, check_out(commit))


def start(python: Path, provider: str, first: bool) -> subprocess.Popen[str]:
    environment = {**os.environ, "OFIPY_TCP_INTERFACE": "lo"}
    command = [str(python), "-P", str(SIDE), provider, "yes" if first else "no"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
    )


def told(side: subprocess.Popen[str]) -> str:
    assert side.stdout is not None
    return side.stdout.readline().strip()


def tell(side: subprocess.Popen[str], line: str) -> None:
    assert side.stdin is not None
    print(line, file=side.stdin, flush=True)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("provider", ["shm", "tcp"])
@pytest.mark.parametrize("first", ["earlier", "present", "both"])
def test_messages(earlier: Path, provider: str, first: str) -> None:
    # Which of two addresses is the larger one is drawn anew each time.
    for _ in range(8 if first == "both" else 2):
        sides = [
            start(earlier, provider, first != "present"),
            start(Path(sys.executable), provider, first != "earlier"),
        ]
        try:
            addresses = [told(side) for side in sides]
            for side, address in zip(sides, reversed(addresses), strict=True):
                tell(side, address)
            places = [told(side) for side in sides]
            assert all(places)
            assert places[0] != places[1]
            for side in sides:
                tell(side, "")
            assert [side.wait(TIMEOUT) for side in sides] == [0, 0]
        finally:
            for side in sides:
                side.kill()
                side.communicate()
