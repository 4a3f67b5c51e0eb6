# SPDX-License-Identifier: BSD-3-Clause
"""The host "there", by ssh; and what both hosts' devices count."""

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from login import ADDRESSES, PORT

ROOT = Path(__file__).parents[3]
COUNTERS = Path("/sys/class/infiniband/rxe0/ports/1")
PYTHON = [sys.executable, "-P"]
BOOT_SECONDS = 300
PASSED_ON = ("OFIPY_", "PYTHON", "TWO_HOSTS")


class OtherHost:
    """What runs there is started here."""

    def __init__(self, folder: Path) -> None:
        self.address = ADDRESSES["there"]
        self.ssh = str(folder / "ssh")

    def wait(self) -> None:
        """Wait until one can log in there."""
        deadline = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                socket.create_connection((self.address, PORT), timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, f"nobody listens at {self.address}:{PORT}"
                time.sleep(0.2)

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command here that runs one there, in the same folder with the same variables."""
        variables = [f"{name}={text}" for name, text in os.environ.items() if name.startswith(PASSED_ON)]
        line = shlex.join(["env", "-C", str(ROOT), *variables, *arguments])
        return [self.ssh, "there", line]

    @contextmanager
    def running(self, *arguments: str, **pipes: int) -> Iterator[subprocess.Popen[str]]:
        """Run a command there meanwhile. The end waits for it, unless the caller has failed."""
        with subprocess.Popen(self.command(arguments), text=True, bufsize=1, **pipes) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    def read(self, *arguments: str, seconds: float = 60) -> str:
        """What a command there prints."""
        return run(self.command(arguments), seconds=seconds)

    def wait_for_listener(self, port: int) -> None:
        """Wait until a program there listens at the port. It is not asked, since a server may take one client only."""
        look = f"until ss -Hltn sport = :{port} | grep -q .; do sleep 0.2; done"
        self.read("timeout", str(BOOT_SECONDS), "sh", "-c", look, seconds=2 * BOOT_SECONDS)


def run(command: Sequence[str], *, seconds: float) -> str:
    """What the command prints; it has to succeed. What it complains of is passed on."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert result.returncode == 0, (
        f"{shlex.join(command)}: {result.returncode}\n{result.stdout}{result.stderr}"
    )
    sys.stderr.write(result.stderr)
    return result.stdout


def sent_packets(there: OtherHost | None = None) -> int:
    """Packets that the device here has sent, or the one there."""
    counter = COUNTERS / "hw_counters" / "sent_pkts"
    return int(counter.read_text() if there is None else there.read("cat", str(counter)))


def started_by(launcher: str, ssh: str) -> list[str]:
    """The command line of a launcher with a process on each host, up to the program."""
    if launcher == "ofipy run":
        return [*PYTHON, "-m", "ofipy", "run", "--hosts", "here,there", "--ssh", ssh]
    return ["mpiexec", "-launcher", "ssh", "-launcher-exec", ssh, "-hosts", "here,there", "-n", "2"]
