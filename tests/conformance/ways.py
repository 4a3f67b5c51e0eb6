# SPDX-License-Identifier: BSD-3-Clause
"""Every way in which a region and a peer get into an operation."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ofipy

Way = Callable[[ofipy.Endpoint, Any, Any, Any], Any]

SIZE = 8
ONE = np.uint64(1)


def started(request: ofipy.PreparedRequest) -> ofipy.PreparedRequest:
    """A prepared operation after its start; what its memory or its peer is may be told then."""
    request.start()
    return request


# How a region, or a list that holds one, gets into an operation: (endpoint, region, peer, remote memory).
MESSAGES: dict[str, Way] = {
    "tsend": lambda ep, region, peer, _: ep.tsend(region, peer, tag=1),
    "tsend a slice": lambda ep, region, peer, _: ep.tsend(region[2:6], peer, tag=1),
    "tsend a list": lambda ep, region, peer, _: ep.tsend([b"x", region], peer, tag=1),
    "tsend with data": lambda ep, region, peer, _: ep.tsend(region, peer, tag=1, remote_data=5),
    "tsend to the end": lambda ep, region, peer, _: ep.tsend(region, peer, tag=1, complete="transmit"),
    "send": lambda ep, region, peer, _: ep.send(region, peer),
    "trecv_into": lambda ep, region, peer, _: ep.trecv_into(region, peer, tag=1),
    "trecv_into from any": lambda ep, region, peer, _: ep.trecv_into(region, tag=1),
    "trecv_into a mask": lambda ep, region, peer, _: ep.trecv_into(region, peer, tag=1, ignore=3),
    "trecv_into a list": lambda ep, region, peer, _: ep.trecv_into([bytearray(1), region], peer, tag=1),
    "recv_into": lambda ep, region, peer, _: ep.recv_into(region, peer),
    "prepare_tsend": lambda ep, region, peer, _: started(ep.prepare_tsend(region, peer, tag=1)),
    "prepare_send": lambda ep, region, peer, _: started(ep.prepare_send(region, peer)),
    "prepare_trecv": lambda ep, region, peer, _: started(ep.prepare_trecv(region, peer, tag=1)),
    "prepare_recv": lambda ep, region, peer, _: started(ep.prepare_recv(region, peer)),
    "post_tsend": lambda ep, region, peer, _: ep.post_tsend(region, peer, tag=1),
    "post_send": lambda ep, region, peer, _: ep.post_send(region, peer),
    "post_trecv": lambda ep, region, peer, _: ep.post_trecv(region, peer, tag=1),
    "post_recv": lambda ep, region, peer, _: ep.post_recv(region, peer),
    "post_recv many": lambda ep, region, peer, _: ep.post_recv(region, peer, flags="multi_recv"),
}
RMA: dict[str, Way] = {
    "read": lambda ep, region, peer, remote: ep.read(region, peer, remote),
    "read a list": lambda ep, region, peer, remote: ep.read([region[:4], region[4:]], peer, remote),
    "write": lambda ep, region, peer, remote: ep.write(region, peer, remote),
    "write to the end": lambda ep, region, peer, remote: ep.write(region, peer, remote, complete="delivery"),
    "prepare_read": lambda ep, region, peer, remote: started(ep.prepare_read(region, peer, remote)),
    "prepare_write": lambda ep, region, peer, remote: started(ep.prepare_write(region, peer, remote)),
    "post_read": lambda ep, region, peer, remote: ep.post_read(region, peer, remote),
    "post_write": lambda ep, region, peer, remote: ep.post_write(region, peer, remote),
}


def post_fetch(ep: ofipy.Endpoint, region: Any, result: Any, peer: Any, remote: Any) -> None:
    ep.post_fetch_atomic(region, peer, remote, op="sum", dtype=np.uint64, result=result)


def post_compare(ep: ofipy.Endpoint, region: Any, compare: Any, result: Any, peer: Any, remote: Any) -> None:
    ep.post_compare_atomic(region, peer, remote, dtype=np.uint64, compare=compare, result=result)


def good(ep: ofipy.Endpoint) -> ofipy.Region:
    return ep.register(bytearray(SIZE))


ATOMICS: dict[str, Way] = {
    "post_atomic": lambda ep, region, peer, remote: ep.post_atomic(
        region, peer, remote, op="sum", dtype=np.uint64
    ),
    "post_fetch_atomic": lambda ep, region, peer, remote: post_fetch(ep, region, good(ep), peer, remote),
    "its result": lambda ep, region, peer, remote: post_fetch(ep, good(ep), region, peer, remote),
    "post_compare_atomic": lambda ep, region, peer, remote: post_compare(
        ep, region, good(ep), good(ep), peer, remote
    ),
    "its compare": lambda ep, region, peer, remote: post_compare(
        ep, good(ep), region, good(ep), peer, remote
    ),
    "its other result": lambda ep, region, peer, remote: post_compare(
        ep, good(ep), good(ep), region, peer, remote
    ),
}

# Operations that name a peer and need no region.
BUFFERS: dict[str, Way] = {
    "tsend bytes": lambda ep, _, peer, __: ep.tsend(b"bytes", peer, tag=1),
    "tsend an array": lambda ep, _, peer, __: ep.tsend(np.zeros(3), peer, tag=1),
    "trecv_into an array": lambda ep, _, peer, __: ep.trecv_into(np.zeros(3), peer, tag=1),
    "trecv": lambda ep, _, peer, __: ep.trecv(peer, tag=1),
    "recv": lambda ep, _, peer, __: ep.recv(peer),
    "probe": lambda ep, _, peer, __: ep.probe(peer, tag=1),
    "trecv_many": lambda ep, _, peer, __: ep.trecv_many(bytearray(100), peer, tag=1),
    "recv_many": lambda ep, _, peer, __: ep.recv_many(bytearray(100), peer),
}
FETCHES: dict[str, Way] = {
    "atomic": lambda ep, _, peer, remote: ep.atomic(ONE, peer, remote, op="sum"),
    "fetch_atomic": lambda ep, _, peer, remote: ep.fetch_atomic(ONE, peer, remote, op="sum"),
    "compare_atomic": lambda ep, _, peer, remote: ep.compare_atomic(ONE, ONE, peer, remote),
}


def named(*tables: dict[str, Way]) -> Any:
    """Parameters out of tables; each way needs what its operation does."""
    needs = {id(RMA): "rma", id(ATOMICS): "atomic", id(FETCHES): "atomic"}
    claims = {"trecv", "recv"}
    for table in tables:
        for name, way in table.items():
            marks = [pytest.mark.needs(needs[id(table)])] if id(table) in needs else []
            if name in claims:
                marks.append(pytest.mark.needs("core_matching"))
            if "many" in name:
                marks.append(pytest.mark.needs("multi_recv"))
            yield pytest.param(way, id=name, marks=marks)


every_region_way = pytest.mark.parametrize("way", list(named(MESSAGES, RMA, ATOMICS)))
every_peer_way = pytest.mark.parametrize("way", list(named(MESSAGES, RMA, ATOMICS, BUFFERS, FETCHES)))
