# SPDX-License-Identifier: BSD-3-Clause
"""Ports for servers that a test starts later, and for places where nobody listens.

Whoever asks the system for any port gets one of its own range, perhaps the one that a test found free a moment ago. The
ports here lie below that range. Each process takes them from a block that no other process of the tests has.
"""

import functools
import itertools
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

BLOCK = 64
"""Ports of a process; those that are in use are passed over."""


def free_port() -> int:
    """A port on which nobody of this network namespace listens, and which nobody is given."""
    _, ports = _reserve_block()
    for port in itertools.islice(ports, BLOCK):
        with suppress(OSError), socket.create_server(("", port)):
            return port
    raise OSError(f"all {BLOCK} ports of this process are in use")


@functools.cache
def _reserve_block() -> tuple[socket.socket, Iterator[int]]:
    """The ports of this process, and the socket whose name keeps them for it until it ends."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    starts = list(range(first_given // 2, first_given - BLOCK + 1, BLOCK))
    SystemRandom().shuffle(starts)
    for start in starts:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0ofipy-test-ports-{start}")
        except OSError:
            name.close()
        else:
            return name, itertools.cycle(range(start, start + BLOCK))
    raise OSError("other processes have all blocks of ports")
