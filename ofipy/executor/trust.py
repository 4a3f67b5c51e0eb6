# SPDX-License-Identifier: BSD-3-Clause
"""Whose pickles are read: those of peers that have proven the key, or that they are of this user.

A pickle makes its reader run any code. So an executor opens no endpoint that strangers reach, and each side checks the
other one before it reads anything of it.
"""

from typing import Any

from ofipy._base import config
from ofipy._base.errors import AccessDenied, ConfigError
from ofipy._base.flags import PeerProof
from ofipy._discovery.av import Peer
from ofipy._objects.endpoint import Endpoint

__all__ = ["refuse_open_door", "refuse_stranger"]

_REMEDY = "make a key, ofipy key new job.key, and set OFIPY_AUTH_KEY_FILE=job.key for the executor and for its workers"


def refuse_open_door(endpoint: Endpoint[Any]) -> None:
    """Check an endpoint to which workers are to connect.

    Raises
    ------
    ConfigError
        When processes of other users could connect to it, because no key is set.
    AccessDenied
        When peers of its provider do not prove the key that is set.
    """
    required = endpoint.info.peer_proof
    lack = endpoint.domain._proof.lack()
    if required is PeerProof.USER:
        return
    if lack is not None or required is PeerProof.NONE:
        what, remedy = lack or ("peers of this provider prove no key", "use link, tcp or shm")
        raise AccessDenied(
            f"{what}, and an executor unpickles what its workers send",
            operation="Executor",
            provider=endpoint.provider,
            remedy=remedy,
        )
    if not config.value("AUTH_KEY_FILE") and not endpoint.address.connects_only:
        raise ConfigError(
            "the executor would listen to a network without a key, and it unpickles what its workers send",
            operation="Executor",
            provider=endpoint.provider,
            remedy=_REMEDY,
        )


def refuse_stranger(endpoint: Endpoint[Any], peer: Peer, operation: str) -> None:
    """Check a peer that is connected.

    Raises
    ------
    AccessDenied
        When it has proven neither a key nor its user.
    """
    if not endpoint.security(peer).proven:
        raise AccessDenied(
            "the peer has proven no key, and what it sends would be unpickled",
            operation=operation,
            provider=endpoint.provider,
            peer=str(peer.address),
            remedy=_REMEDY,
        )
