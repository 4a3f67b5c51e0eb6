# SPDX-License-Identifier: BSD-3-Clause
"""Both ends of a connection over the device."""

from collections.abc import Iterator

import numpy as np

import ofipy

TIMEOUT = 30


def open_domain() -> ofipy.Domain:
    info = ofipy.getinfo(provider="verbs", ep_type="msg")[0]
    return ofipy.Fabric(info).domain(progress="auto")


def connected() -> Iterator[tuple[ofipy.Endpoint, ofipy.Endpoint]]:
    """The ends, in domains of their own, which are closed behind them."""
    here, there = open_domain(), open_domain()
    listener = here.passive_endpoint()
    listener.listen()
    client = there.endpoint().enable()
    connection = client.connect(listener.address)
    server = listener.wait(timeout=TIMEOUT).accept()
    connection.wait(timeout=TIMEOUT)
    yield client, server
    for domain in here, there:
        domain.fabric.close()


def pattern(size: int, seed: int) -> np.ndarray:
    return ((np.arange(size, dtype=np.uint64) * 37 + seed) % 251).astype(np.uint8)
