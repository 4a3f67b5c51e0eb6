# SPDX-License-Identifier: BSD-3-Clause
"""Statistics pages of layout 2, as ``native/src/base/page.h`` has it, taken apart.

A page comes from another process. Its length is checked before; here every text ends within its place, every number is
any number, and what refers to nothing is left out.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ofipy.statistics.records import Endpoint, Messages, Peer

__all__ = [
    "CHANGES_AT",
    "PAGE_SIZE",
    "Header",
    "UnknownPage",
    "read_changes",
    "read_endpoints",
    "read_header",
]

_MAGIC: Final = b"ofipystp"
_VERSION: Final = 2
_PART: Final = 256  # bytes of one part of an endpoint
_STRIDE: Final = 4096  # between the parts of one endpoint, of 16 endpoints each
_BLOCKS: Final = 16
_SENT: Final = ("eager", "bounce", "announced")
_RECEIVED: Final = (*_SENT, "mapped", "pipelined", "attached")
_ROWS: Final = (*(("sent", name) for name in _SENT), *(("received", name) for name in _RECEIVED))
_BLOCK: Final = (len(_ROWS) + 2) * _STRIDE
_PEERS_AT: Final = _STRIDE + _BLOCKS * _BLOCK
_PEER: Final = 128
_PEER_LIMIT: Final = 2048
_OPEN, _CLOSED = 1, 2
PAGE_SIZE: Final = _PEERS_AT + _PEER_LIMIT * _PEER
CHANGES_AT: Final = 16

_HEADER = struct.Struct("=8sIIQi68s")
_COUNTS = struct.Struct("=5Q9Q10Q64x")
_ENTRY = struct.Struct("=IIQ15QI28s88s")
_WORD = struct.Struct("=Q")
_SIZES = struct.Struct("=32Q")
_PEER_ENTRY = struct.Struct("=5QII16s64s")

_COUNTERS: Final = (
    "reads", "writes", "atomics", "flushes", "errors", "peers_up", "peers_lost", "messages_dropped", "packed",
)  # fmt: skip
_LEVELS: Final = (
    "posted_receives", "unexpected_messages", "unexpected_bytes", "announced_messages", "linear_searches",
    "backlog", "pending", "sleeps", "wakeups", "progress_calls",
    "registrations", "registrations_reused", "registrations_dropped",
    "packet_buffers_reclaimed", "packet_buffers",
)  # fmt: skip


class UnknownPage(Exception):
    """The page has another layout than this reader knows."""


class Header(NamedTuple):
    """Whose page it is."""

    pid: int
    """In the process's own namespace."""
    rank: int
    job: str


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="replace")


def read_header(page: bytes) -> Header:
    """Whose page it is.

    Raises
    ------
    UnknownPage
        When it is no page, or one of another version.
    """
    magic, version, pid, _, rank, job = _HEADER.unpack_from(page)
    if magic != _MAGIC or version != _VERSION:
        raise UnknownPage
    return Header(pid, rank, _text(job))


def read_changes(word: bytes) -> int:
    """The number of changes to the entries; an odd one while they change."""
    return _WORD.unpack(word)[0]  # type: ignore[no-any-return]


def read_endpoints(page: bytes) -> Iterator[Endpoint]:
    """All endpoints of a page of known layout."""
    peers: dict[int, list[Peer]] = {}
    for at in range(_PEERS_AT, PAGE_SIZE, _PEER):
        sent, bytes_sent, received, bytes_received, errors, number, _, way, address = _PEER_ENTRY.unpack_from(
            page, at
        )
        if number:
            peer = Peer(_text(address), _text(way), sent, received, bytes_sent, bytes_received, errors)
            peers.setdefault(number, []).append(peer)
    for block in range(_STRIDE, _PEERS_AT, _BLOCK):
        for at in range(block, block + _STRIDE, _PART):
            entry = _ENTRY.unpack_from(page, at + (len(_ROWS) + 1) * _STRIDE)
            if entry[0] in (_OPEN, _CLOSED):
                yield _endpoint(page, at, entry, peers)


def _endpoint(page: bytes, at: int, entry: Sequence[Any], peers: dict[int, list[Peer]]) -> Endpoint:
    """The endpoint whose first part is at that offset."""
    state, number, opened, *levels, offloads, provider, name = entry
    values = _COUNTS.unpack_from(page, at)
    messages = {}
    for row, (key, length) in enumerate(zip(_ROWS, values[5:14], strict=True)):
        counts = _SIZES.unpack_from(page, at + (1 + row) * _STRIDE)
        if any(counts):
            direction, protocol = key
            messages[direction, "offloaded" if offloads and not row % len(_SENT) else protocol] = Messages(
                counts, length
            )
    counters: dict[str, int] = dict(zip((*_COUNTERS, *_LEVELS), (*values[14:23], *levels), strict=True))
    for total, direction in (("sends", "sent"), ("receives", "received")):
        counters[total] = sum(sum(each.counts) for key, each in messages.items() if key[0] == direction)
        counters[f"bytes_{direction}"] = sum(
            each.bytes for key, each in messages.items() if key[0] == direction
        )
    for protocol in _RECEIVED[len(_SENT) :]:
        moved = messages.get(("received", protocol))
        counters[f"messages_{protocol}"] = sum(moved.counts) if moved else 0
    others = values[:5]
    own = peers.get(number, []) if state == _OPEN else []
    if any(others):
        sent, bytes_sent, received, bytes_received, errors = others
        own = [*own, Peer("other", "", sent, received, bytes_sent, bytes_received, errors)]
    return Endpoint(
        number=number,
        provider=_text(provider),
        name=_text(name),
        opened=opened / 1e9,
        last_progress=values[23] / 1e9,
        counters=counters,
        messages=messages,
        peers=tuple(own),
    )
