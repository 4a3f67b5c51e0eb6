# SPDX-License-Identifier: BSD-3-Clause
"""Print the most memory that a process needs while a column is sent, received, written and read: ``PROVIDER BYTES``."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ofipy

TIMEOUT = 300


def read_bytes(field: str) -> int:
    """``VmRSS`` or ``VmHWM`` of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) << 10


def peak_of(act: Callable[[], object]) -> int:
    """Bytes above what is resident before."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is resident now
    before = read_bytes("VmRSS")
    act()
    return read_bytes("VmHWM") - before


def main(provider: str, size: int) -> None:
    source, target = np.ones((size // 8, 2)), np.full((size // 8, 2), 2.0)
    caps = "msg|tagged|rma"
    with ofipy.open(provider=provider, caps=caps) as ep, ofipy.open(provider=provider, caps=caps) as other:
        peer = ep.insert(other.address)

        def pass_message(sent: np.ndarray, received: np.ndarray) -> None:
            receive = other.trecv_into(received, tag=1)
            send = ep.tsend(sent, peer, tag=1)
            receive.wait(timeout=TIMEOUT)
            send.wait(timeout=TIMEOUT)

        pass_message(source[:1000, 0], target[:1000, 0])
        peaks = [peak_of(lambda: pass_message(source[:, 0], target[:, 1]))]
        assert (target[:, 1] == 1).all()
        assert (target[1000:, 0] == 2).all()
        flat = target.reshape(-1)[: size // 8]
        with other.register(flat, access="remote_read|remote_write") as region:
            peaks.append(peak_of(lambda: ep.write(source[:, 1], peer, region.remote).wait(timeout=TIMEOUT)))
            ep.flush(peer).wait(timeout=TIMEOUT)
            assert (flat == 1).all()
            flat[:] = 3
            peaks.append(peak_of(lambda: ep.read(source[:, 0], peer, region.remote).wait(timeout=TIMEOUT)))
            assert (source[:, 0] == 3).all()
        assert ep.stats().packed == 0
    print(max(peaks))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
