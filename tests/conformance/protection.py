# SPDX-License-Identifier: BSD-3-Clause
"""Whether peers over tcp were encrypted, as ``OFIPY_ENCRYPTION=required`` promises of every one."""

import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import ofipy
from ofipy._base import lifetime
from ofipy._base.linger import Departure


def requires_encryption() -> bool:
    """Whether endpoints that are opened now must encrypt."""
    return os.environ.get("OFIPY_ENCRYPTION") == "required"


def count_protection(endpoint: ofipy.Endpoint) -> Counter[str]:
    """How many peers over tcp are connected to an open endpoint now, as ``encrypted`` and ``plain``.

    With a key a connected peer has proven it, and nothing else makes ``proven`` true.
    """
    found: Counter[str] = Counter()
    with suppress(ofipy.FabricError):  # of type msg, and not connected
        peers = [endpoint.peer] if endpoint.info.ep_type is ofipy.EndpointType.MSG else list(endpoint.av)
        for peer in peers:
            security = endpoint.security(peer)
            if security.proven and endpoint.way(peer) == "tcp":
                found["encrypted" if security.encrypted else "plain"] += 1
    return found


def check_protection(found: Counter[str]) -> None:
    """Fail on a peer that was not encrypted."""
    assert not found["plain"], f"OFIPY_ENCRYPTION=required, and peers over tcp were {dict(found)}"


def watch_endpoints(patch: Callable[..., None]) -> Counter[str]:
    """Count the peers of each endpoint of this process that must encrypt, whenever connections are about to end.

    Those are the moments at which anything begins to close, lingers, or has lingered, and a connection is shut down. A
    helper thread may connect and move everything between two looks of a close. The connection ends only as the endpoint
    drains.
    """
    found: Counter[str] = Counter()
    watched: WeakSet[ofipy.Endpoint] = WeakSet()
    enable = ofipy.Endpoint.enable

    def enable_and_watch(endpoint: ofipy.Endpoint) -> ofipy.Endpoint:
        if requires_encryption():
            watched.add(endpoint)
        return enable(endpoint)

    def count_first(function: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_call(*arguments: Any, **options: Any) -> Any:
            for endpoint in list(watched):
                found.update(count_protection(endpoint))
            return function(*arguments, **options)

        return count_and_call

    patch(ofipy.Endpoint, "enable", enable_and_watch)
    patch(ofipy.Endpoint, "_closing", count_first(ofipy.Endpoint._closing))
    patch(ofipy.Endpoint, "shutdown", count_first(ofipy.Endpoint.shutdown))
    patch(Departure, "drains", count_first(Departure.drains))
    patch(lifetime, "_part", count_first(lifetime._part))
    patch(lifetime, "_progress_all", count_first(lifetime._progress_all))
    return found
