# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of endpoints of type msg share: listeners and clients, each in a domain of its own."""

from collections.abc import Callable, Iterator

import pytest
from sides import Target

import ofipy

TIMEOUT = 20

OpenDomain = Callable[..., ofipy.Domain]


@pytest.fixture
def keep_endpoints(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ofipy.Endpoint]]:
    """The endpoints of a test: one that were dropped before its domain is closed would warn."""
    made: list[ofipy.Endpoint] = []
    enable = ofipy.Endpoint.enable

    def enable_and_keep(endpoint: ofipy.Endpoint) -> ofipy.Endpoint:
        made.append(endpoint)
        return enable(endpoint)

    monkeypatch.setattr(ofipy.Endpoint, "enable", enable_and_keep)
    yield made
    made.clear()


@pytest.fixture
def open_domain(target: Target, keep_endpoints: list[ofipy.Endpoint]) -> Iterator[OpenDomain]:
    """Opens domains for connected endpoints; closes them at the end."""
    made = []
    connecting = target.connected()
    assert connecting is not None

    def make(progress: str = "auto") -> ofipy.Domain:
        made.append(connecting.open_domain(progress=progress))
        return made[-1]

    yield make
    for domain in made:
        domain.fabric.close(linger=0)


@pytest.fixture
def listener(open_domain: OpenDomain) -> ofipy.PassiveEndpoint:
    """One that listens, in a domain of its own."""
    made = open_domain().passive_endpoint()
    made.listen()
    return made


@pytest.fixture
def client(open_domain: OpenDomain) -> ofipy.Endpoint:
    """An endpoint to be connected, in a domain of its own."""
    return open_domain().endpoint().enable()


def connect(listener: ofipy.PassiveEndpoint, client: ofipy.Endpoint) -> ofipy.Endpoint:
    """The listener's end of a connection."""
    connection = client.connect(listener.address)
    server = listener.wait(timeout=TIMEOUT).accept()
    connection.wait(timeout=TIMEOUT)
    return server
