# SPDX-License-Identifier: BSD-3-Clause
"""Hosts, our address towards them, and cores."""

import ipaddress
import os
import socket

import click

__all__ = ["cores_of", "host_of", "towards"]


def host_of(address: str) -> str:
    """The host of an address, for the TCP connection beside the fabric."""
    where = address.partition("://")[2] or address
    host = where.rpartition(":")[0].strip("[]") if "://" in address else where
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return "127.0.0.1" if "://" in address else host


def towards(host: str) -> str | None:
    """Our address on the way to a host, so that it finds us; None: it is no host of the network."""
    where = host_of(host)
    if "://" in host and where not in host:
        return None
    try:
        family, _, _, _, address = socket.getaddrinfo(where, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(address)
            found: str = probe.getsockname()[0]
    except OSError:
        return None
    return found


def cores_of(text: str) -> set[int]:
    """Cores of ``0,2-4``."""
    cores: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            cores |= set(range(int(first), int(last or first) + 1))
        except ValueError:
            raise click.UsageError(f"--pin-core {text}: cores such as 0,2-4 are meant") from None
    unknown = cores - os.sched_getaffinity(0)
    if unknown or not cores:
        raise click.UsageError(
            f"core {text} is not among those this process may use: {sorted(os.sched_getaffinity(0))}"
        )
    return cores
