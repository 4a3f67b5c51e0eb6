# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of remote memory share."""

import numpy as np
import pytest
from sides import Side

import ofipy
from ofipy import RemoteRegion

TIMEOUT = 30
BOTH = ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE


def tell(side: Side, region: ofipy.Region) -> None:
    """Send the other side the handle of a region."""
    side.send(bytes(region.remote), tag=1).wait(timeout=TIMEOUT)


def hear(side: Side) -> RemoteRegion:
    """What the other side told."""
    blob = bytearray(256)
    got = side.receive(blob, tag=1).wait(timeout=TIMEOUT)
    return RemoteRegion.from_bytes(blob[: got.length])


def lent(ep: ofipy.Endpoint, size: int, memory: str) -> tuple[ofipy.Region, object]:
    """Bytes that peers may read and write, and what keeps them.

    ``plain`` memory is the process's own, ``mapped`` is what transports may let peers map, and ``unaligned`` is of
    that too, from an odd address on.
    """
    if memory == "plain":
        return ep.register(bytearray(size), access=BOTH), None
    array = ep.empty(size + 1, np.uint8, access=ofipy.Access.LOCAL | BOTH)
    region = ep.domain.region(array)
    return (region[1:] if memory == "unaligned" else region[:size]), array


def refused(request: ofipy.Request) -> ofipy.RemoteAccessError:
    with pytest.raises(ofipy.RemoteAccessError) as caught:
        request.wait(timeout=TIMEOUT)
    return caught.value


def forge(remote: RemoteRegion, **changes: object) -> RemoteRegion:
    """A handle that its owner never gave."""
    names = ["key", "offset", "length", "access"]
    # Devices go by their own names, and not by the key.
    if "key" not in changes:
        names.append("ways")
    return RemoteRegion(**{name: getattr(remote, name) for name in names} | changes)
