# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of remote memory share."""

import pytest
from sides import Side

import ofipy
from ofipy import RemoteRegion

TIMEOUT = 30
BOTH = ofipy.Access.REMOTE_READ | ofipy.Access.REMOTE_WRITE


def tell(side: Side, region: ofipy.Region) -> None:
    """Send the other side the handle of a region."""
    side.ep.tsend(bytes(region.remote), side.peer, tag=1).wait(timeout=TIMEOUT)


def hear(side: Side) -> RemoteRegion:
    """What the other side told."""
    blob = bytearray(64)
    got = side.ep.trecv_into(blob, side.peer, tag=1).wait(timeout=TIMEOUT)
    return RemoteRegion.from_bytes(blob[: got.length])


def refused(request: ofipy.Request) -> ofipy.RemoteAccessError:
    with pytest.raises(ofipy.RemoteAccessError) as caught:
        request.wait(timeout=TIMEOUT)
    return caught.value


def forge(remote: RemoteRegion, **changes: object) -> RemoteRegion:
    """A handle that its owner never gave."""
    fields = {name: getattr(remote, name) for name in ("key", "offset", "length", "access")}
    return RemoteRegion(**fields | changes)
