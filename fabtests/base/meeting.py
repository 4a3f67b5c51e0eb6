# SPDX-License-Identifier: BSD-3-Clause
"""How two sides exchange names, and options where both are ours: in band, or over the TCP connection beside."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import ofipy
from fabtests.base.agreement import Described, adopt, describe, differences, read_options, refuse
from fabtests.base.options import Options
from fabtests.base.out_of_band import OutOfBand, behind_name, pack_name, unpack_name
from fabtests.base.pattern import pattern
from fabtests.base.program import Failed, Program

__all__ = ["Meeter", "described", "exchange", "read_difference", "swap_names"]

Bytes = npt.NDArray[np.uint8]


class Meeter(Protocol):
    """What a session offers for this."""

    client: bool
    options: Options
    program: Program
    oob: OutOfBand | None
    peer: ofipy.Peer

    @property
    def out_of_band_address(self) -> bool:
        """Whether names go over the TCP connection."""
        ...

    def server_address(self) -> str:
        """Where the server is."""
        ...

    def post(self) -> None:
        """Post a receive."""
        ...

    def take(self) -> Bytes:
        """Wait for the receive that was posted first; what came."""
        ...

    def send(self, message: Any, *, complete: str | None = None) -> None:
        """Send, and wait until the buffer may be used again."""
        ...


def exchange(session: Meeter, endpoint: ofipy.Endpoint) -> ofipy.Peer:
    """Exchange names of an endpoint with the other side's, and options."""
    if session.out_of_band_address:
        return endpoint.insert(swap_names(session, endpoint))
    if session.client:
        session.peer = peer = endpoint.insert(session.server_address())
        session.send(_introduction(session, endpoint))
        difference = read_difference(session, session.take())
        session.post()
        if difference is not None:
            raise difference
        return peer
    block = session.take().tobytes()
    session.peer = peer = endpoint.insert(unpack_name(endpoint, block))
    difference = _agree(session, block)
    session.post()
    if difference is not None:
        session.send(described(session), complete="delivery")
        raise difference
    session.send(pattern(1))
    return peer


def swap_names(session: Meeter, endpoint: ofipy.Endpoint) -> bytes:
    """Exchange names of an endpoint with the other side's over the TCP connection, and options."""
    assert session.oob is not None
    block = session.oob.swap(pack_name(endpoint, describe(session.options)))
    difference = _agree(session, block)
    if difference is not None:
        raise difference
    return unpack_name(endpoint, block)


def described(session: Meeter) -> Bytes:
    """The options as a message has them."""
    return np.frombuffer(describe(session.options), np.uint8)


def read_difference(session: Meeter, message: Bytes) -> Failed | None:
    """The end of this side, if a message has options that differ."""
    theirs = _read(session, message.tobytes())
    return None if theirs is None else refuse(differences(session.options, theirs))


def _introduction(session: Meeter, endpoint: ofipy.Endpoint) -> Bytes:
    """A client's first message: its name and options, or its name alone where messages are short."""
    block = pack_name(endpoint, describe(session.options))
    if len(block) > endpoint.info.max_msg_size:
        block = unpack_name(endpoint, block)
    return np.frombuffer(block, np.uint8)


def _agree(session: Meeter, block: bytes) -> Failed | None:
    """Server: take the client's options where they were not given here. The end of this side, if some differ then."""
    theirs = _read(session, behind_name(block))
    if theirs is None:
        return None
    if session.client:
        return refuse(differences(session.options, theirs, among=theirs.given))
    adopt(session.options, theirs)
    return refuse(differences(session.options, theirs))


def _read(session: Meeter, said: bytes) -> Described | None:
    return read_options(said, default=session.program.size)
