# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that are played on one: which ways endpoints took where each domain claims to be on another."""

import contextlib
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import ofipy

if TYPE_CHECKING:
    from sides import Target


def part_hosts(target: "Target", patch: Callable[..., None] = setattr) -> None:
    """Put every domain that is opened from now on on a host of its own, and have it listen to the network."""
    opened = ofipy.Domain.__init__

    def open_elsewhere(domain: ofipy.Domain, *arguments: Any, **options: Any) -> None:
        os.environ["OFIPY_HOST_ID"] = secrets.token_hex(8)
        opened(domain, *arguments, **options)

    if target.remote:
        os.environ["OFIPY_INTERFACE"] = target.interface
        patch(ofipy.Domain, "__init__", open_elsewhere)


def ways_between_hosts(target: "Target", endpoints: Iterable[ofipy.Endpoint]) -> Counter[str]:
    """By which way these go to their peers; where each domain is a host of its own, to those of other domains."""
    ways: Counter[str] = Counter()
    if not target.over_several_ways:
        return ways
    for endpoint in endpoints:
        if endpoint.closed:
            continue
        own = host_in(endpoint.address)
        for peer in endpoint.av:
            # Of who was named by a text the way that would be tried first is told until it is used.
            named = peer.address.identity != bytes(16)
            if not target.remote or (named and host_in(peer.address) != own):
                with contextlib.suppress(ofipy.Unreachable):
                    ways[endpoint.way(peer)] += 1
    return ways


def host_in(address: ofipy.Address) -> bytes:
    """Id of the host that shared memory is of; zeros where the address does not tell."""
    return next((raw[8:16] for name, raw in address.entries if name == "shm"), address.host[:8])
