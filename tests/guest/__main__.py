# SPDX-License-Identifier: BSD-3-Clause
"""Run a command in a small virtual machine that has this machine's files: `python -m tests.guest -- COMMAND…`."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from .initramfs import initramfs
from .kernel import get_kernel
from .machine import Hardware, run
from .tools import SYSTEM_FOLDERS, GuestError, obstacle

TIMED_OUT, FAILED = 124, 125
# Without them there is no file tree, and nothing comes out.
ALWAYS = ["virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay"]
# What tests/network needs.
NETWORK = ["veth", "bridge", "sch_netem", "iptable_filter", "ip6table_filter", "xt_statistic", "tcp_diag"]
# What the command sees of this process's environment.
VARIABLES = ("CI", "HOME", "LANG", "PATH", "TERM", "USER", "VIRTUAL_ENV")
TEMPORARY = "/guest"
"""A folder that only the guest has, for temporary files; ``init`` makes it."""
PREFIXES = ("LC_", "OFIPY_", "PYTEST_", "PYTHON")


class TimeLimit(BaseException):
    """The time is over; nothing on the way takes it for an error of its own."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what is done here, wherever it stands, when the time is over or this process is asked to end."""

    def over(number: int, frame: FrameType | None) -> None:
        raise TimeLimit

    def asked(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGALRM, over)
    signal.signal(signal.SIGTERM, asked)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.guest",
        description=__doc__,
        epilog=f"The exit status is the command's; {TIMED_OUT}: the time was over; {FAILED}: there is no guest.",
    )
    add = parser.add_argument
    add("--timeout", type=float, default=300, metavar="SECONDS", help="for everything (default: %(default)s)")
    add(
        "--boot-timeout",
        type=float,
        default=90,
        metavar="SECONDS",
        help="until the command begins (%(default)s)",
    )
    add("--memory", type=int, default=2048, metavar="MIB", help="of the machine (%(default)s)")
    add("--cpus", type=int, default=min(4, os.cpu_count() or 1), help="of the machine (%(default)s)")
    add(
        "--accelerator",
        choices=["auto", "kvm", "tcg"],
        default="auto",
        help="auto: KVM if it works, else emulation",
    )
    add("--modules", default="", metavar="NAMES", help="kernel modules to load too, with commas between them")
    add(
        "--share",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="what is written there remains",
    )
    add(
        "--wire",
        type=Path,
        nargs=2,
        metavar=("OWN", "OTHER"),
        help="a cable to another guest, which names the two ends the other way round; the interface is eth0",
    )
    add("--env", action="append", default=[], metavar="NAME", help="a variable to pass on too")
    add("command", nargs="+", metavar="COMMAND", help="the command, and its arguments, behind `--`")
    return parser.parse_args(arguments)


def environment(names: list[str]) -> dict[str, str]:
    """The variables that the command sees."""
    wanted = {*VARIABLES, *names}
    found = {name: value for name, value in os.environ.items() if name in wanted or name.startswith(PREFIXES)}
    # It is root there, and may be nobody in particular here.
    found["PATH"] = os.pathsep.join((found.get("PATH", os.defpath), *SYSTEM_FOLDERS))
    found["TMPDIR"] = TEMPORARY
    return found


def guest(options: argparse.Namespace) -> int:
    """Have the guest run the command; its exit status."""
    missing = obstacle()
    if missing is not None:
        raise GuestError(missing)
    kernel = get_kernel()
    token = secrets.token_hex(8)
    shares = tuple(folder.resolve(strict=True) for folder in options.share)
    wire = tuple(end.resolve() for end in options.wire) if options.wire else None
    plug = ["virtio_net"] if wire else []
    archive = initramfs(
        kernel.modules([*ALWAYS, *NETWORK, *plug, *filter(None, options.modules.split(","))]),
        options.command,
        environment(options.env),
        token,
        shares,
    )
    hardware = Hardware(kernel.image, options.memory, options.cpus, shares, wire)
    # A file that is gone with this process, whatever ends it.
    descriptor = os.memfd_create("initramfs")
    with open(descriptor, "wb") as file:
        file.write(archive)
        file.flush()
        return run(hardware, options.accelerator, descriptor, token, options.boot_timeout)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        with time_limit(options.timeout):
            try:
                return guest(options)
            finally:
                if options.wire:
                    options.wire[0].unlink(missing_ok=True)
    except TimeLimit:
        print(f"guest: the {options.timeout:g} s are over", file=sys.stderr)
        return TIMED_OUT
    except (GuestError, OSError) as error:
        print(f"guest: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
