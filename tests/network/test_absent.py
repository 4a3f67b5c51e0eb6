# SPDX-License-Identifier: BSD-3-Clause
"""What the error says where an endpoint of shared memory exists and cannot be reached."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hosts import Network
from nodes import Node, RemoteError

NOBODY = 65534  # the user's number
Start = Callable[..., Node]


def test_an_endpoint_of_another_user_is_named(network: Network, start: Start) -> None:
    host = network.host()
    other = start(host)
    other.become(user=NOBODY)
    address = other.open(provider="shm", service=27475)
    one = start(host, CONNECT_TIMEOUT=1)
    one.open(provider="shm")
    with pytest.raises(
        RemoteError,
        match=rf"ConnectionRefused.*user {NOBODY} listens there.*here {os.getuid()}.*run both as one user",
    ):
        one.send(address=address, tag=1, text="")


def test_that_another_network_namespace_may_have_it_is_said(network: Network, start: Start) -> None:
    other = start(network.host())
    address = other.open(provider="shm", service=27475)
    one = start(network.host(), CONNECT_TIMEOUT=1)
    one.open(provider="shm")
    with pytest.raises(
        RemoteError, match=rf"of user {os.getuid()}, in this network namespace, no endpoint listens there"
    ):
        one.send(address=address, tag=1, text="")
