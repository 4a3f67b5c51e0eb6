# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be done is refused with what is wrong about it, never with the words of an error code alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ofipy
from ofipy import Flag, Op

BARE = ("Invalid argument", "Operation not supported", "Bad address", "Numerical result out of range")


class Stage:
    """An endpoint, itself as its peer, memory of its own and the same as remote memory."""

    def __init__(self, ep: ofipy.Endpoint) -> None:
        self.ep, self.me = ep, ep.insert(ep.address)
        rights = "send|recv|read|write|remote_read|remote_write"
        self.region = ep.register(np.zeros(8, np.uint64), access=rights)
        self.remote = self.region.remote

    def post(self, **fields: Any) -> int:
        record = self.ep.domain.operations(1)
        record["op"], record["peer"] = Op.TSEND, self.me
        for name, value in fields.items():
            record[name] = value
        return self.ep.post(record)


Call = Callable[[Stage], Any]
ONE = np.uint64(1)
SUM, UINT64 = ofipy.AtomicOp.SUM, ofipy.Datatype.UINT64

MESSAGES: dict[str, tuple[Call, str]] = {
    "op": (lambda s: s.post(op=0), "op=0; an Op is meant"),
    "peek of a send": (lambda s: s.ep.tsend(b"x", s.me, flags="peek"), "flags peek do not go with it"),
    "unknown flag": (
        lambda s: s.ep.tsend(b"x", s.me, flags=Flag(1 << 40)),
        "flags 0x10000000000 do not go with it",
    ),
    "prepared": (lambda s: s.ep.prepare_tsend(b"x", s.me, flags="claim"), "flags claim do not go with it"),
    "posted": (lambda s: s.ep.post_tsend(s.region, s.me, flags="discard"), "flags discard do not go with it"),
    "inject of a receive": (
        lambda s: s.post(op=Op.TRECV, flags=Flag.INJECT),
        "flags inject do not go with it (known are",
    ),
    "hold alone": (lambda s: s.post(op=Op.TRECV, flags=Flag.HOLD), "flags hold do not go together"),
    "part of a region": (
        lambda s: s.post(region=s.region.id, offset=60, length=8),
        "8 bytes at 60 are not within region",
    ),
    "no segments": (lambda s: s.post(segment_count=2), "segment_count=2 without segments"),
    "no memory": (lambda s: s.post(length=2), "2 bytes at address 0"),
}
RMA: dict[str, tuple[Call, str]] = {
    "inject of a read": (
        lambda s: s.ep.read(bytearray(4), s.me, s.remote[0:4], flags="inject"),
        "flags inject do not go with it",
    ),
    "data of a read": (
        lambda s: s.ep.read(bytearray(4), s.me, s.remote[0:4], flags="remote_cq_data"),
        "flags remote_cq_data do not go with it",
    ),
    "match of a write": (
        lambda s: s.ep.write(b"abcd", s.me, s.remote[0:4], complete="match"),
        "flags match_complete do not go with it",
    ),
    "posted": (
        lambda s: s.ep.post_write(s.region, s.me, s.remote, flags="multi_recv"),
        "flags multi_recv do not go with it",
    ),
    "no remote segments": (
        lambda s: s.post(op=Op.READ, remote_segment_count=2),
        "remote_segment_count=2 without remote_segments",
    ),
}
ATOMICS: dict[str, tuple[Call, str]] = {
    "cswap": (
        lambda s: s.ep.atomic(ONE, s.me, s.remote[0:8], op="cswap"),
        "cswap on uint64 is not among its operations (compare_atomic() has it)",
    ),
    "read": (
        lambda s: s.ep.atomic(ONE, s.me, s.remote[0:8], op="read"),
        "read on uint64 is not among its operations (fetch_atomic() has it)",
    ),
    "bits of floats": (
        lambda s: s.ep.atomic(np.float64(1), s.me, s.remote[0:8], op="bor"),
        "bor on float64 is not among its operations (domain.atomic_valid()",
    ),
    "part of an element": (
        lambda s: s.post(op=Op.ATOMIC, atomic_op=SUM, datatype=UINT64, region=s.region.id, length=12),
        "a piece of 12 bytes at the peer; whole elements of 8 bytes are meant",
    ),
    "datatype": (lambda s: s.post(op=Op.ATOMIC, datatype=99), "min on 99 is not among its operations"),
}


def check(stage: Stage, call: Call, said: str) -> None:
    with pytest.raises(ofipy.FabricError) as caught:
        call(stage)
    assert said in str(caught.value)
    assert not any(bare in str(caught.value) for bare in BARE)


@pytest.mark.parametrize("wrong", MESSAGES)
def test_messages(ep: ofipy.Endpoint, wrong: str) -> None:
    check(Stage(ep), *MESSAGES[wrong])


@pytest.mark.needs("rma")
@pytest.mark.parametrize("wrong", RMA)
def test_rma(ep: ofipy.Endpoint, wrong: str) -> None:
    check(Stage(ep), *RMA[wrong])


@pytest.mark.needs("atomic")
@pytest.mark.parametrize("wrong", ATOMICS)
def test_atomics(ep: ofipy.Endpoint, wrong: str) -> None:
    check(Stage(ep), *ATOMICS[wrong])


def test_what_is_not_there(ep: ofipy.Endpoint) -> None:
    stage, missing = Stage(ep), 0
    kinds: dict[ofipy.Cap, Call] = {
        ofipy.Cap.RMA: lambda s: s.ep.read(bytearray(8), s.me, s.remote[0:8]),
        ofipy.Cap.ATOMIC: lambda s: s.ep.atomic(ONE, s.me, s.remote[0:8], op="sum"),
        ofipy.Cap.MULTI_RECV: lambda s: s.ep.recv_many(bytearray(64)),
        ofipy.Cap.FENCE: lambda s: s.ep.tsend(b"x", s.me, flags="fence"),
    }
    for cap, call in kinds.items():
        if not ep.info.caps & cap:
            missing += 1
            check(stage, call, f"without the capability {str(cap.name).lower()} (choose another provider")
    assert missing < len(kinds)


def test_options(ep: ofipy.Endpoint) -> None:
    for wrong, said in (
        ("max_msg_size", "max_msg_size can only be read"),
        ("nope", "there is no option nope here"),
    ):
        check(Stage(ep), lambda s, name=wrong: s.ep.set_option(name, 5), said)  # type: ignore[misc]
    check(Stage(ep), lambda s: s.ep.option("nope"), "there is no option nope here")
    for defaults in ({"tx_flags": "peek"}, {"rx_flags": "inject"}):
        said = "flags that cannot be the default of every operation: of sends inject"
        check(Stage(ep), lambda s, flags=defaults: s.ep.alias(**flags), said)  # type: ignore[misc]
