# SPDX-License-Identifier: BSD-3-Clause
"""libfabric sends by rendezvous to us: expected, unexpected, cut short, dropped, and many at once."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from conftest import open_on_loopback, raw_address

import ofipy

TIMEOUT = 20
theirs, ours = open_on_loopback("ofi:tcp"), open_on_loopback("tcp")
them, us = ours.insert(raw_address(theirs)), theirs.insert(raw_address(ours))
data = (np.arange(1 << 20) % 251).astype(np.uint8)

for complete in ({}, {"complete": "delivery"}):
    room = np.zeros(1 << 20, np.uint8)
    receive = ours.trecv_into(room, them, tag=1)
    send = theirs.tsend(data, us, tag=1, remote_data=77, **complete)
    assert receive.wait(timeout=TIMEOUT).remote_data == 77
    send.wait(timeout=TIMEOUT)
    assert np.array_equal(room, data)

sends = [theirs.tsend(data[: 20_000 + n], us, tag=n) for n in range(100)]
for n in reversed(range(100)):
    room = np.zeros(20_000 + n, np.uint8)
    assert ours.trecv_into(room, them, tag=n).wait(timeout=TIMEOUT).length == 20_000 + n
    assert np.array_equal(room, data[: 20_000 + n])
ofipy.wait_all(sends, timeout=TIMEOUT)

cut = ours.trecv_into(bytearray(10), them, tag=3)
theirs.tsend(data, us, tag=3).wait(timeout=TIMEOUT)
try:
    cut.wait(timeout=TIMEOUT)
except ofipy.Truncated:
    pass
else:
    raise AssertionError("it was not cut")
last = ours.trecv_into(bytearray(4), them, tag=4)
theirs.tsend(b"last", us, tag=4).wait(timeout=TIMEOUT)
assert last.wait(timeout=TIMEOUT).length == 4
ours.fabric.close()
theirs.fabric.close()
print("good")
