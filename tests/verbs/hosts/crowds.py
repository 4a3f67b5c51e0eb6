# SPDX-License-Identifier: BSD-3-Clause
"""Many callers at once on two hosts with a key: honest ones beside a flood, and 16 processes on each host."""

import json
import subprocess
import time
from contextlib import AbstractContextManager

import pytest
from other_host import COUNTERS, PYTHON, ROOT, OtherHost, run
from wire import STALE, Rejections

import ofipy

pytestmark = pytest.mark.timeout(400)

CALLERS = 20
DEADLINE = 10  # seconds; OFIPY_CONNECT_TIMEOUT is the same unless it is set
RATE = 1000
SECONDS = 60
EACH = 16
START_SECONDS = 350


def flood_from(
    there: OtherHost, address: ofipy.Address, how: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    program = str(ROOT / "tests/verbs/hosts/flood.py")
    return there.running(*PYTHON, program, str(address), how, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def requests_that_came() -> int:
    """Connection requests that the kernel here has received."""
    return int((COUNTERS / "cm_rx_msgs" / "req").read_text())


def test_a_stale_request_is_counted(there: OtherHost) -> None:
    """What the last test counts: the answer to a request in the name of a connected queue pair of the other host."""
    with (
        ofipy.open(provider="verbs", progress="auto") as ep,
        Rejections() as rejections,
        flood_from(there, ep.address, "stale") as impostor,
    ):
        assert impostor.stdin is not None
        assert impostor.stdout is not None
        assert ep.trecv(tag=0).wait(timeout=SECONDS).length == 0
        assert impostor.stdout.readline() == "sent\n"
        deadline = time.monotonic() + SECONDS
        while not rejections.reasons[STALE]:
            assert time.monotonic() < deadline, f"no stale request was rejected: {rejections.reasons}"
            time.sleep(0.2)
        # It ends with its input.
        impostor.stdin.close()


def test_honest_callers_beside_a_flood(there: OtherHost) -> None:
    """First requests of the host there, none of which proves anything, keep no caller of this host from connecting."""
    with (
        ofipy.open(provider="verbs", progress="auto") as ep,
        ofipy.open(provider="verbs", progress="auto") as opened,
        flood_from(there, ep.address, str(RATE)) as flood,
    ):
        assert flood.stdin is not None
        assert flood.stdout is not None
        assert ep.trecv(tag=0).wait(timeout=SECONDS).length == 0
        assert flood.stdout.readline() == "begun\n"
        began, before = time.monotonic(), requests_that_came()
        while requests_that_came() - before < RATE:
            assert time.monotonic() - began < SECONDS, "the flood does not come"
            time.sleep(0.05)
        callers = [opened.domain.endpoint().enable() for _ in range(CALLERS)]
        receives = [ep.trecv(tag=1) for _ in callers]
        called = time.monotonic()
        sends = [
            each.tsend(b"honest", each.insert(ep.address), tag=1, complete="delivery") for each in callers
        ]
        ofipy.wait_all(sends, timeout=DEADLINE)
        took = time.monotonic() - called
        ofipy.wait_all(receives, timeout=SECONDS)
        arrived, lasted = requests_that_came() - before, time.monotonic() - began
        flood.stdin.close()
        told = json.loads(flood.stdout.readline())
        print(
            f"{CALLERS} callers came up within {took:.2f} s; {arrived / lasted:.0f} requests/s came; sent: {told}"
        )
        assert told["sent"] >= RATE * told["seconds"] * 0.98


@pytest.mark.parametrize("provider", ["link:shm+verbs", "link"])
def test_all_to_all_at_once(provider: str, there: OtherHost) -> None:
    """No caller takes the place of another: the connection managers reject none as stale (reason 10)."""
    crowd = [*PYTHON, str(ROOT / "tests/verbs/hosts/crowd.py"), provider, str(2 * EACH)]
    with Rejections() as rejections, there.running(*crowd, str(EACH), str(EACH)) as theirs:
        printed = run([*crowd, "0", str(EACH)], seconds=START_SECONDS)
        assert theirs.wait(timeout=SECONDS) == 0
        reasons = rejections.finish()
    print(f"rejections by reason: {dict(reasons)}")
    # Neighbours of one host use its memory, so all connections are on the cable.
    within = 2 * EACH * (EACH - 1)
    assert json.loads(printed) == {"shm": within, "verbs": 2 * EACH * EACH}
    assert reasons[STALE] == 0
