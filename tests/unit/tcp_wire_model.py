# SPDX-License-Identifier: BSD-3-Clause
"""A model of the headers on tcp's wire: tables and `struct`, from the protocol's description alone."""

import struct
from dataclasses import dataclass, replace

MSG, TAG, READ, ANSWER, WRITE, RTS, CTS, DATA = range(8)
HELLO, PROOF, ANNOUNCE, PULL, PULLED, REFUSED, ATOMIC, FETCHED, CREDIT, GOODBYE, INTERNAL = range(8, 19)
WITH_DATA = {MSG, TAG, WRITE, RTS, ANNOUNCE, ATOMIC, INTERNAL}  # remote cq data, with flag 1
WITH_TAG = {TAG, RTS, ANNOUNCE, INTERNAL}
WITH_LENGTH = {RTS, ANNOUNCE}
WITH_REMOTE = {READ, WRITE, ATOMIC}
WITH_PAYLOAD = {MSG, TAG, ANSWER, WRITE, DATA, PULLED, ATOMIC, FETCHED, INTERNAL}
WORDS = {HELLO: 5, PROOF: 4, ANNOUNCE: 1, PULL: 3, PULLED: 1, REFUSED: 1, CREDIT: 1}
ACK = 2
CHANNELS = 3  # of an announcement: messages, tagged, internal
CQ_DATA = 1
COMPARE_ATOMIC = 9
LONGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Header:
    """What a message says before its payload."""

    op: int
    op_data: int = 0
    flags: int = 0
    payload: int = 0
    data: int = 0
    tag: int = 0
    length: int = 0
    words: tuple[int, ...] = ()
    remote: tuple[tuple[int, int, int], ...] = ()

    @property
    def has_data(self) -> bool:
        return self.op in WITH_DATA and bool(self.flags & CQ_DATA) and not self.is_ack

    @property
    def is_ack(self) -> bool:
        return self.op == MSG and self.op_data == ACK


def encode(header: Header, order: str = "<", *, identifier: int = 0, count: int | None = None) -> bytes:
    """The header's bytes; `count`: the byte that most operations leave to chance."""
    numbers = [header.data] if header.has_data else []
    numbers += [header.tag] if header.op in WITH_TAG else []
    numbers += [header.length] if header.op in WITH_LENGTH else []
    numbers += header.words
    numbers += [number for segment in header.remote for number in segment]
    size = 16 + 8 * len(numbers)
    base = struct.pack(
        order + "BBHBBBBQ",
        *(3, header.op, header.flags, header.op_data, len(header.remote) if count is None else count),
        *(size, identifier, size + header.payload),
    )
    return base + struct.pack(f"{order}{len(numbers)}Q", *numbers)


def decode(raw: bytes, order: str, *, extended: bool) -> Header | None:
    """What the bytes say; None: nothing that can be."""
    _, op, flags, op_data, count, size, _, total = struct.unpack(order + "BBHBBBBQ", raw[:16])
    if op > (INTERNAL if extended else DATA) or (op == MSG and op_data not in (0, ACK)):
        return None
    if op == ANNOUNCE and op_data >= CHANNELS:
        return None
    count = count if op in WITH_REMOTE else 0
    if (op in WITH_REMOTE and not 1 <= count <= 4) or not size <= total <= LONGEST:
        return None
    header = Header(op, op_data, flags, total - size)
    blank = replace(header, words=(0,) * WORDS.get(op, 0), remote=((0, 0, 0),) * count)
    if len(encode(blank)) != size or len(raw) != size:
        return None
    if header.payload and (op not in WITH_PAYLOAD or header.is_ack):
        return None
    numbers = list(struct.unpack(f"{order}{(size - 16) // 8}Q", raw[16:]))
    data = numbers.pop(0) if header.has_data else 0
    tag = numbers.pop(0) if op in WITH_TAG else 0
    length = numbers.pop(0) if op in WITH_LENGTH else 0
    words = tuple(numbers.pop(0) for _ in range(WORDS.get(op, 0)))
    remote = tuple((numbers[3 * i], numbers[3 * i + 1], numbers[3 * i + 2]) for i in range(count))
    reach = sum(segment[1] for segment in remote)
    if length > LONGEST or reach > LONGEST:
        return None
    if op == WRITE and reach != header.payload:
        return None
    # So that both operands together have a length.
    if op == ATOMIC and reach > LONGEST // 2:
        return None
    if op == ATOMIC and header.payload != (2 * reach if op_data == COMPARE_ATOMIC else reach):
        return None
    return replace(header, data=data, tag=tag, length=length or reach, words=words, remote=remote)
