# SPDX-License-Identifier: BSD-3-Clause
"""Why nobody answers at a port, as far as a bare TCP socket can tell."""

import errno
import os
import socket

from ofipy.ping.place import Place

__all__ = ["knock"]

_SECONDS = 3.0
_FIREWALL = "open the port in the firewalls of both hosts: nft list ruleset, iptables -L"


def knock(place: Place) -> tuple[str, str]:
    """Connect and close.

    Parameters
    ----------
    place : Place
        Host and port.

    Returns
    -------
    tuple of str
        What happened, and what to do.
    """
    try:
        with socket.create_connection((place.host, place.port), timeout=_SECONDS):
            pass
    except socket.gaierror as error:
        return (
            f"the name {place.host} has no address ({error.strerror})",
            "correct the name, /etc/hosts or DNS",
        )
    except TimeoutError:
        return f"packets to TCP port {place.port} are dropped", _FIREWALL
    except OSError as error:
        if error.errno == errno.ECONNREFUSED:
            return f"TCP port {place.port} is closed", "start the other side there: ofipy doctor --serve"
        text = os.strerror(error.errno) if error.errno else str(error)
        return f"TCP port {place.port}: {text}", "look at routes and links: ip route get, ip -s link"
    return (
        f"TCP port {place.port} is open, but what listens there does not answer",
        "another program has the port: ss -ltnp",
    )
