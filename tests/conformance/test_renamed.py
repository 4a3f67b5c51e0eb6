# SPDX-License-Identifier: BSD-3-Clause
"""Keywords and attributes under their former names: they do what they did, and warn."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import ofipy

TIMEOUT = 20.0
ONE = np.uint64(1)

Posting = Callable[..., object]


def calls(ep: ofipy.Endpoint, me: ofipy.Peer, remote: ofipy.RemoteRegion) -> dict[str, Posting]:
    """Every call that may wait for room."""
    room = bytearray(8)
    return {
        "tsend": lambda **k: ep.tsend(b"x", me, tag=1, **k),
        "send": lambda **k: ep.send(b"x", me, **k),
        "trecv_into": lambda **k: ep.trecv_into(room, tag=2, **k),
        "recv_into": lambda **k: ep.recv_into(room, **k),
        "trecv": lambda **k: ep.trecv(tag=2, **k),
        "recv": lambda **k: ep.recv(**k),
        "tsend_obj": lambda **k: ep.tsend_obj(1, me, tag=3, **k),
        "send_obj": lambda **k: ep.send_obj(1, me, **k),
        "trecv_obj": lambda **k: ep.trecv_obj(tag=4, **k),
        "recv_obj": lambda **k: ep.recv_obj(**k),
        "read": lambda **k: ep.read(room, me, remote, **k),
        "write": lambda **k: ep.write(room, me, remote, **k),
        "atomic": lambda **k: ep.atomic(ONE, me, remote, op="sum", **k),
        "fetch_atomic": lambda **k: ep.fetch_atomic(ONE, me, remote, op="sum", **k),
        "compare_atomic": lambda **k: ep.compare_atomic(ONE, ONE, me, remote, **k),
        "PreparedRequest.start": lambda **k: ep.prepare_tsend(b"x", me, tag=5).start(**k),
        "ofipy.start": lambda **k: ofipy.start(ep.prepare_tsend(b"x", me, tag=5), **k),
    }


@pytest.mark.needs("rma", "atomic")
def test_timeout_of_a_posting_call_warns_and_names_wait(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    region = ep.register(np.zeros(1, np.uint64), access="remote_read|remote_write")
    for name, call in calls(ep, me, region.remote).items():
        with pytest.warns(DeprecationWarning, match=r"room_timeout= now.*\.wait\(timeout=\)") as caught:
            call(timeout=TIMEOUT)
        # It is the caller's line that the warning names.
        assert [warning.filename for warning in caught] == [__file__], name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(room_timeout=TIMEOUT)
            call(room_timeout=None)


def test_the_former_names_mean_the_same(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    receive = ep.trecv_into(bytearray(1), tag=7)
    with pytest.warns(DeprecationWarning, match="remote_data= now"):
        sent = ep.tsend(b"x", me, tag=7, data=5)
    receive.wait(timeout=TIMEOUT)
    sent.wait(timeout=TIMEOUT)
    with pytest.warns(DeprecationWarning, match=r"remote_data now.*Message\.data"):
        assert receive.data == receive.remote_data == 5
    prepared = ep.prepare_trecv(bytearray(1), tag=8)
    with pytest.raises(TypeError, match="room_timeout="):
        ofipy.start(prepared, patience=1)


def test_a_message_reads_like_its_bytes(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    payload = bytes(range(64))
    ep.tsend(payload, me, tag=7, remote_data=9).wait(timeout=TIMEOUT)
    message = ep.trecv(tag=7).wait(timeout=TIMEOUT)
    assert message == payload
    assert payload == message
    assert message == bytearray(payload)
    assert message == memoryview(payload)
    assert message != payload[:-1]
    assert message != "text"
    assert bytes(message) == payload
    assert len(message) == message.length == 64
    assert message[1] == 1
    assert message[-4:] == payload[-4:]
    assert list(message) == list(payload)
    assert b"\x07\x08" in message
    assert message.data is message.data
    assert message.remote_data == 9
    with pytest.raises(IndexError):
        message[64]


def test_the_repr_of_a_message_is_short(ep: ofipy.Endpoint, me: ofipy.Peer) -> None:
    for payload in (b"short", b"x" * 32, b"y" * 100_000):
        receive = ep.trecv(tag=7)
        sent = ep.tsend(payload, me, tag=7)
        message = receive.wait(timeout=TIMEOUT)
        sent.wait(timeout=TIMEOUT)
        text = repr(message)
        assert f"{len(payload)} bytes" in text
        assert repr(payload[:32]) in text
        assert ("…" in text) == (len(payload) > 32)
        assert len(text) < 250
