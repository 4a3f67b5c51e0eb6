# SPDX-License-Identifier: BSD-3-Clause
"""One side of a pair of processes: tells its address, hears the other's, then both send and receive.

``earlier.py PROVIDER FIRST``: with FIRST ``yes`` this side sends before it has received anything, so it is the one that
connects. Where both do, their requests may cross.
"""

import sys

import numpy as np

import ofipy

TIMEOUT = 20
SIZES = (8, 64 << 10, 1 << 20)


def pattern(size: int) -> np.ndarray:
    return (np.arange(size, dtype=np.uint32) * 7 + 3).astype(np.uint8)


provider, first = sys.argv[1], sys.argv[2] == "yes"
with ofipy.open(provider=provider) as ep:
    print(ep.address, flush=True)
    peer = ep.insert(input())
    rooms = {size: np.zeros(size, np.uint8) for size in SIZES}
    receives = [ep.trecv_into(room, peer, tag=size) for size, room in rooms.items()]
    if not first:
        ofipy.wait_all(receives, timeout=TIMEOUT)
    sends = [ep.tsend(pattern(size), peer, tag=size) for size in SIZES]
    ofipy.wait_all(sends + receives, timeout=TIMEOUT)
    assert all(np.array_equal(room, pattern(size)) for size, room in rooms.items())
    # Neither closes while the other is at it.
    print(ofipy.__file__, flush=True)
    input()
