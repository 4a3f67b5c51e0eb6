# SPDX-License-Identifier: BSD-3-Clause
"""One process of one side: its endpoints, which share a queue, and memory for each that its peer may use."""

import contextlib
import ipaddress
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

import ofipy
from fabtests.base.channel import Channel
from fabtests.base.needs import require
from fabtests.base.program import Failed
from fabtests.perf.kinds import Kind
from fabtests.perf.plan import Plan

__all__ = ["Side"]

Records = np.ndarray[Any, np.dtype[np.void]]

CONNECT_SECONDS = 30.0
LINE = 64  # the two halves of a queue pair's memory begin at cache lines


class Side:
    """Opened, and met with the other side over the channel.

    Parameters
    ----------
    plan : Plan
        What is measured.
    kind : Kind
        With which operation.
    channel : Channel
        To the same process of the other side, which does this at the same time.
    first : bool
        The client's.
    """

    def __init__(self, plan: Plan, kind: Kind, channel: Channel, *, first: bool) -> None:
        self.plan, self.kind, self.first = plan, kind, first
        self._stack = contextlib.ExitStack()
        require(kind.caps, provider=plan.provider, ep_type=plan.ep_type)
        try:
            self._open(channel)
            self._lend(channel)
        except BaseException:
            self._stack.close()
            raise

    # ------------------------------------------------------------------------------------------------ opening

    def _open(self, channel: Channel) -> None:
        plan = self.plan
        where: dict[str, Any] = {
            "provider": plan.provider,
            "node": None if ipaddress.ip_address(channel.own_host).is_loopback else channel.own_host,
            "caps": self.kind.caps,
        }
        self._how: dict[str, Any] = {}
        if not self.kind.latency:
            self._how["selective_completion"] = "transmit"
        if plan.ep_type == "msg" and not self.first:
            self._accept(channel, where)
            return
        opened = self._stack.enter_context(ofipy.open(**where, ep_type=plan.ep_type, **self._how))
        self.domain = opened.domain
        shared: dict[str, Any] = {"cq": opened.cq} | ({"av": opened.av} if plan.ep_type == "rdm" else {})
        more = [self.domain.endpoint(**shared, **self._how).enable() for _ in range(plan.qps - 1)]
        self.endpoints = [opened, *(self._stack.enter_context(each) for each in more)]
        if plan.ep_type == "msg":
            self._connect(channel)
        else:
            self._insert(channel)

    def _insert(self, channel: Channel) -> None:
        channel.send(addresses=[bytes(each.address).hex() for each in self.endpoints])
        theirs = _bytes(channel, "addresses", len(self.endpoints))
        self.peers = [endpoint.insert(each) for endpoint, each in zip(self.endpoints, theirs, strict=True)]
        self.addresses = str(self.endpoints[0].address), str(self.peers[0].address)

    def _connect(self, channel: Channel) -> None:
        listener = channel.receive(listener=str)["listener"]
        for endpoint in self.endpoints:
            endpoint.connect(listener).wait(timeout=CONNECT_SECONDS)
        self._connected()

    def _accept(self, channel: Channel, where: dict[str, Any]) -> None:
        listener = self._stack.enter_context(ofipy.listen(**where))
        self.domain = listener.domain
        queue = self.domain.cq()
        channel.send(listener=str(listener.address))
        self.endpoints = [
            listener.wait(timeout=CONNECT_SECONDS).accept(cq=queue, **self._how) for _ in range(self.plan.qps)
        ]
        self._connected()

    def _connected(self) -> None:
        self.peers = [each.peer for each in self.endpoints]
        self.addresses = str(self.endpoints[0].address), str(self.endpoints[0].peer_address)

    def _lend(self, channel: Channel) -> None:
        """Memory of each endpoint: what goes out, and behind it what comes in."""
        self.limit = self.endpoints[0].info.max_msg_size
        longest = max(size for size in (*self.plan.sizes, self.kind.size) if size <= self.limit)
        self._half = -(-longest // LINE) * LINE
        lent = "rma" in self.kind.caps
        access = "local|remote_read|remote_write" if lent else "local"
        self._memory = [self.domain.empty(2 * self._half, np.uint8, access=access) for _ in self.endpoints]
        for memory in self._memory:
            memory.fill(0)
        self._regions = [self.domain.region(memory) for memory in self._memory]
        channel.send(handles=[bytes(each.remote).hex() if lent else "" for each in self._regions])
        handles = _bytes(channel, "handles", len(self.endpoints))
        self._remotes = [ofipy.RemoteRegion.from_bytes(each) for each in handles if each]

    # ------------------------------------------------------------------------------------------------- memory

    def outgoing(self, size: int) -> ofipy.Region:
        """What the first endpoint sends."""
        return self._regions[0][:size]

    def incoming(self, size: int) -> ofipy.Region:
        """Where it receives."""
        return self._regions[0][self._half : self._half + size]

    def landing(self, size: int) -> npt.NDArray[np.uint8]:
        """The same, for who looks at it."""
        return self._memory[0][self._half : self._half + size]

    def remote(self, size: int, index: int = 0) -> ofipy.RemoteRegion:
        """The peer's memory for the operation: where it receives, or for reads what it sends."""
        begin = 0 if self.kind.operation == "read" else self._half
        return self._remotes[index][begin : begin + size]

    def operations(self, size: int) -> Records:
        """One record for each endpoint: the operation that is measured."""
        records = self._local(size, 0)
        operation = self.kind.operation
        if operation == "send":
            records["op"] = ofipy.Op.SEND
            return records
        for index in range(len(records)):
            remote = self.remote(size, index)
            records["remote_offset"][index], records["remote_key"][index] = remote.offset, remote.key
        if operation == "atomic":
            self._atomic(records)
        else:
            records["op"] = ofipy.Op.READ if operation == "read" else ofipy.Op.WRITE
        if operation == "read":
            records["offset"] += self._half
        return records

    def _atomic(self, records: Records) -> None:
        """The operand and what it is compared with are of our memory, and so is where the old value goes."""
        records["datatype"] = ofipy.Datatype.UINT64
        records["result_region"] = records["region"]
        records["result_offset"] = records["offset"] + self._half
        if self.plan.compare:
            records["op"], records["atomic_op"] = ofipy.Op.COMPARE_ATOMIC, ofipy.AtomicOp.CSWAP
            records["compare_region"], records["compare_offset"] = records["region"], records["offset"]
        else:
            records["op"], records["atomic_op"] = ofipy.Op.FETCH_ATOMIC, ofipy.AtomicOp.SUM

    def receives(self, size: int) -> Records:
        """One record for each endpoint: a receive of what its peer sends."""
        records = self._local(size, self._half)
        records["op"] = ofipy.Op.RECV
        return records

    def _local(self, size: int, begin: int) -> Records:
        records = self.domain.operations(len(self.endpoints))
        records["peer"] = self.peers
        records["region"] = [each.id for each in self._regions]
        records["offset"] = [each.offset + begin for each in self._regions]
        records["length"] = size
        records["context"] = np.arange(len(records))
        return records

    def post_receives(self, size: int, iterations: int) -> None:
        """Post the first receives of each endpoint."""
        for endpoint, record in zip(self.endpoints, self.receives(size), strict=True):
            records = np.repeat(np.atleast_1d(record), min(self.plan.receive_depth, iterations))
            while len(records):
                try:
                    records = records[endpoint.post(records) :]
                except ofipy.Again:
                    self.domain.progress()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def _bytes(channel: Channel, name: str, count: int) -> list[bytes]:
    """What the other side tells of each of its endpoints."""
    told = channel.receive(**{name: list})[name]
    try:
        found = [bytes.fromhex(each) for each in told]
    except (TypeError, ValueError):
        found = []
    if len(found) != count:
        raise Failed(f"the other side told no {name} of {count} queue pairs")
    return found
