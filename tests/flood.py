# SPDX-License-Identifier: BSD-3-Clause
"""Time a peer that is served while others flood its server with TLS handshakes: ``python -m tests.flood``.

The server, the peer and the flood are processes of their own, each on a core of its own if there are three. The flood
replays the first message of a member, which costs the server as much as a member does, and hangs up after the answer.
Rounds without and with the flood alternate. Printed are the median and the 99th percentile of the peer's round trips in
each, the handshakes a second, and by how much the flood moves the 99th percentile. The exit code is 1 when that is more
than the bound.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

SIDE = Path(__file__).with_name("flood_side.py")
BOUND = 200.0  # microseconds


class Side:
    """One of the processes."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SIDE), *arguments],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),
        )

    def hear(self) -> list[str]:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args} has ended")
        return line.split()

    def tell(self) -> None:
        """Write a line to it."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def run_side(environment: dict[str, str], *arguments: str) -> Iterator[Side]:
    """A process, which ends with the block."""
    side = Side(environment, *arguments)
    try:
        yield side
    finally:
        side.close()


def measure_flood(environment: dict[str, str], address: str, peer: Side) -> tuple[list[float], float]:
    """Percentiles beside a flood, and its handshakes a second."""
    with run_side(environment, "flood", "2", address) as flood:
        flood.hear()
        flood.tell()
        begin = time.monotonic()
        peer.tell()
        times = [float(each) for each in peer.hear()]
        flood.tell()
        answered = int(flood.hear()[0])
        return times, answered / (time.monotonic() - begin)


def main() -> None:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="of each kind (default: 5)")
    parser.add_argument("--count", type=int, default=20000, help="round trips of a round (default: 20000)")
    parser.add_argument("--bound", type=float, default=BOUND, help="of the difference, microseconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(32))
        environment = {"OFIPY_AUTH_KEY_FILE": str(key), "OFIPY_ENCRYPTION": "required"}
        with run_side(environment, "serve", "0") as server:
            address = server.hear()[0]
            with run_side(environment, "measure", "1", address, str(options.count)) as peer:
                peer.hear()
                differences = []
                for _ in range(options.rounds):
                    peer.tell()
                    quiet = [float(each) for each in peer.hear()]
                    flooded, rate = measure_flood(environment, address, peer)
                    differences.append(flooded[1] - quiet[1])
                    print(
                        f"alone {quiet[0]:.1f} us, 99 % {quiet[1]:.1f} us; beside {rate:.0f} handshakes/s "
                        f"{flooded[0]:.1f} us, 99 % {flooded[1]:.1f} us, at most {flooded[2]:.0f} us",
                        flush=True,
                    )
    moved = statistics.median(differences)
    print(f"the 99th percentile grows by {moved:.1f} us (at most {options.bound:.0f} are allowed)")
    sys.exit(moved > options.bound)


if __name__ == "__main__":
    main()
