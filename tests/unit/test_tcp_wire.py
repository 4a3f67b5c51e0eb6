# SPDX-License-Identifier: BSD-3-Clause
"""The codec of the tcp provider against a model of the wire, and what libfabric sent.

Each input of the codec ends where memory ends: who reads beyond it does not survive.
"""

import errno
import os
import shlex
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from tcp_wire_model import (
    ACK,
    ANNOUNCE,
    ATOMIC,
    CHANNELS,
    COMPARE_ATOMIC,
    CTS,
    GOODBYE,
    HELLO,
    INTERNAL,
    LONGEST,
    MSG,
    READ,
    RTS,
    WITH_LENGTH,
    WITH_PAYLOAD,
    WITH_REMOTE,
    WITH_TAG,
    WORDS,
    WRITE,
    Header,
    decode,
    encode,
)

ROOT = Path(__file__).resolve().parents[2]
DECLARATIONS = """
struct tcp_control { uint8_t type; uint16_t private_size; uint64_t magic, capabilities; bool swapped; };
struct tcp_rdm { uint8_t version, features; uint16_t port; uint32_t pid; };
struct ofp_remote_segment { uint64_t offset, length, key; };
struct tcp_header {
    uint8_t op, op_data, remote_count, header_size;
    uint16_t flags;
    uint64_t payload, data, tag, length, words[5];
    struct ofp_remote_segment remote[4];
};
struct control_vector {
    const char *bytes; uint8_t type; uint16_t private_size; bool swapped; const char *private_data; struct tcp_rdm rdm;
};
struct header_vector { const char *bytes; bool swapped; uint8_t count_byte; struct tcp_header header; };

void tcp_control_encode(const struct tcp_control *control, uint8_t *bytes);
int tcp_control_decode(const uint8_t *bytes, struct tcp_control *control);
void tcp_rdm_encode(const struct tcp_rdm *rdm, uint8_t *bytes);
void tcp_rdm_decode(const uint8_t *bytes, struct tcp_rdm *rdm);
size_t tcp_header_encode(const struct tcp_header *header, uint8_t id, bool swapped, uint8_t *bytes);
const char *tcp_header_decode(const uint8_t *bytes, bool swapped, bool extended, struct tcp_header *header);
size_t wire_sizes(size_t which);
size_t wire_header_length(const uint8_t *bytes);
bool wire_is_offer(uint64_t offer);
const struct control_vector *wire_control_vector(size_t index);
const struct header_vector *wire_header_vector(size_t index);
uint8_t *wire_end_of_memory(void);
"""

# -------------------------------------------------------------------------------------------------- the codec


@dataclass(frozen=True, slots=True)
class Codec:
    """The C functions, with Python's values."""

    ffi: FFI
    c: Any
    end: Any = field(repr=False)  # nothing can be read from here on

    def at_the_end(self, raw: bytes) -> Any:
        start = self.end - len(raw)
        self.ffi.memmove(start, raw, len(raw))
        return start

    def length(self, raw: bytes) -> int:
        return int(self.c.wire_header_length(self.at_the_end(raw)))

    def encode(
        self, header: Header, *, identifier: int = 0, swapped: bool = False, count: int | None = None
    ) -> bytes:
        room = self.ffi.new("uint8_t[120]")
        given = self.ffi.new("struct tcp_header *")
        for name in ("op", "op_data", "flags", "payload", "data", "tag", "length"):
            setattr(given, name, getattr(header, name))
        given.remote_count = len(header.remote) if count is None else count
        for i, word in enumerate(header.words):
            given.words[i] = word
        for i, segment in enumerate(header.remote):
            given.remote[i] = segment
        size = self.c.tcp_header_encode(given, identifier, swapped, room)
        return bytes(self.ffi.buffer(room, size))

    def decode(self, raw: bytes, *, swapped: bool = False, extended: bool = True) -> Header | str:
        # Leftovers of the caller's must not show through.
        header = self.ffi.new("struct tcp_header *")
        self.ffi.buffer(header)[:] = b"\xa5" * self.ffi.sizeof("struct tcp_header")
        wrong = self.c.tcp_header_decode(self.at_the_end(raw), swapped, extended, header)
        return self.ffi.string(wrong).decode() if wrong else self.fields(header)

    def fields(self, header: Any) -> Header:
        numbers = {
            name: getattr(header, name) for name in ("op", "op_data", "flags", "payload", "data", "tag")
        }
        remote = [header.remote[i] for i in range(header.remote_count)]
        return Header(
            **numbers,
            length=header.length,
            words=tuple(header.words[i] for i in range(WORDS.get(header.op, 0))),
            remote=tuple((each.offset, each.length, each.key) for each in remote),
        )


@pytest.fixture(scope="module")
def codec(tmp_path_factory: pytest.TempPathFactory) -> Codec:
    library = tmp_path_factory.mktemp("wire") / "wire.so"
    folders = [ROOT / "providers/tcp", ROOT / "native/include", ROOT / "tests/native"]
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            *("-shared", "-fPIC", "-O1", "-std=c11", "-D_GNU_SOURCE", *(f"-I{folder}" for folder in folders)),
            *(ROOT / "tests/unit/tcp_wire_library.c", ROOT / "providers/tcp/stream/wire.c", "-o", library),
        ],
        check=True,
        timeout=60,
    )
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    c = ffi.dlopen(str(library))
    names = ("tcp_control", "tcp_rdm", "tcp_header", "control_vector", "header_vector")
    assert [c.wire_sizes(i) for i in range(5)] == [ffi.sizeof(f"struct {name}") for name in names]
    assert c.wire_sizes(5) == ffi.offsetof("struct tcp_header", "remote")
    end = c.wire_end_of_memory()
    assert end
    return Codec(ffi, c, end)


# ------------------------------------------------------------------------------------------------- strategies

OPS = st.integers(0, INTERNAL)
BYTE = st.integers(0, 0xFF)
NUMBER = st.integers(0, 2**64 - 1)
LENGTH = st.one_of(st.integers(0, 2**20), st.sampled_from([LONGEST - 200, 2**32, 2**40]))
ORDERS = st.sampled_from(["<", ">"])
NATIVE = "<" if struct.pack("=H", 1) == struct.pack("<H", 1) else ">"


@st.composite
def headers(draw: st.DrawFn, ops: st.SearchStrategy[int] = OPS) -> Header:
    """Any that can be."""
    op = draw(ops)
    kinds = {MSG: st.sampled_from([0, ACK]), ANNOUNCE: st.integers(0, CHANNELS - 1)}
    op_data = draw(kinds.get(op, BYTE))
    header = Header(
        op, op_data, draw(st.integers(0, 0xFFFF)), words=tuple(draw(NUMBER) for _ in range(WORDS.get(op, 0)))
    )
    payload = draw(LENGTH) if op in WITH_PAYLOAD and not header.is_ack else 0
    if op in WITH_REMOTE:
        lengths = draw(st.lists(st.integers(0, 2**59), min_size=1, max_size=4))
        remote = tuple((draw(NUMBER), length, draw(NUMBER)) for length in lengths)
        payload = {READ: 0, WRITE: 1, ATOMIC: 2 if op_data == COMPARE_ATOMIC else 1}[op] * sum(lengths)
        header = replace(header, remote=remote, length=sum(lengths))
    if op in WITH_LENGTH:
        header = replace(header, length=draw(st.integers(0, LONGEST)))
    return replace(
        header,
        payload=payload,
        data=draw(NUMBER) if header.has_data else 0,
        tag=draw(NUMBER) if op in WITH_TAG else 0,
    )


# ---------------------------------------------------------------------------------------------- data messages


@settings(max_examples=300)
@given(header=headers(), order=ORDERS, identifier=BYTE, count=BYTE)
def test_a_header_there_and_back(
    codec: Codec, header: Header, order: str, identifier: int, count: int
) -> None:
    leftover = None if header.op in WITH_REMOTE else count
    raw = encode(header, order, identifier=identifier, count=leftover)
    swapped = order != NATIVE
    assert codec.encode(header, identifier=identifier, swapped=swapped, count=leftover) == raw
    assert codec.length(raw) == codec.length(raw[:16]) == len(raw)
    assert codec.decode(raw, swapped=swapped) == header == decode(raw, order, extended=True)
    stock = codec.decode(raw, swapped=swapped, extended=False)
    assert stock == (header if header.op < HELLO else "an unknown operation")


@settings(max_examples=600)
@given(header=headers(), order=ORDERS, extended=st.booleans(), data=st.data())
def test_changed_bytes_are_judged_as_the_model_judges(
    codec: Codec, header: Header, order: str, extended: bool, data: st.DataObject
) -> None:
    raw = bytearray(encode(header, order) + bytes(104))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, 15), st.integers(0, 119)))
        raw[place] = data.draw(
            st.one_of(BYTE, st.integers(0, 18), st.sampled_from([16, 24, 32, 40, 64, 112, 120]))
        )
    length = codec.length(bytes(raw[:16]))
    assert length == (raw[6] if 16 <= raw[6] <= 120 and raw[6] % 8 == 0 else 0)
    if length:
        raw += bytes(max(0, length - len(raw)))
        exact = bytes(raw[:length])
        got = codec.decode(exact, swapped=order != NATIVE, extended=extended)
        assert (None if isinstance(got, str) else got) == decode(exact, order, extended=extended)


@settings(max_examples=300)
@given(raw=st.binary(min_size=120, max_size=120), op=st.integers(0, 19), order=ORDERS)
def test_noise_is_judged_as_the_model_judges(codec: Codec, raw: bytes, op: int, order: str) -> None:
    for length in range(16, 121, 8):
        total = struct.pack(order + "Q", length + raw[9] % 2 * 8)
        exact = bytes([raw[0], op, *raw[2:5], raw[5] % 6, length, raw[7]]) + total + raw[16:length]
        got = codec.decode(exact, swapped=order != NATIVE)
        assert (None if isinstance(got, str) else got) == decode(exact, order, extended=True)


@given(header=headers(), order=ORDERS, data=st.data())
def test_a_header_of_another_length_is_refused(
    codec: Codec, header: Header, order: str, data: st.DataObject
) -> None:
    raw = encode(header, order)
    # Cut short or drawn out: the decoder gets as many bytes as the header claims to have, and no more.
    for size in range(16, 121, 8):
        other = bytes([*raw[:6], size, *raw[7:]])[:size].ljust(size, b"\0")
        got = codec.decode(other, swapped=order != NATIVE)
        assert got == header if size == len(raw) else got == "a header that is not as long as its contents"
    size = data.draw(BYTE.filter(lambda size: not (16 <= size <= 120 and size % 8 == 0)))
    assert codec.length(bytes([*raw[:6], size, *raw[7:16]])) == 0


@given(header=headers(), order=ORDERS, total=st.one_of(st.integers(0, 119), st.integers(2**63, 2**64 - 1)))
def test_an_impossible_size_is_refused(codec: Codec, header: Header, order: str, total: int) -> None:
    raw = encode(header, order)
    total = total if total >= 2**63 else total % len(raw)
    raw = raw[:8] + struct.pack(order + "Q", total) + raw[16:]
    assert codec.decode(raw, swapped=order != NATIVE) == "an impossible size"


@given(header=headers(), op=st.integers(INTERNAL + 1, 255))
def test_an_unknown_operation_is_refused(codec: Codec, header: Header, op: int) -> None:
    raw = encode(header)
    assert codec.decode(bytes([raw[0], op, *raw[2:]]), swapped=NATIVE != "<") == "an unknown operation"


@given(header=headers(st.just(ANNOUNCE)), channel=st.integers(CHANNELS, 255))
def test_an_announcement_on_an_unknown_channel_is_refused(codec: Codec, header: Header, channel: int) -> None:
    raw = encode(replace(header, op_data=channel))
    assert codec.decode(raw, swapped=NATIVE != "<") == "an announcement on an unknown channel"


@given(
    header=headers(st.sampled_from(sorted({READ, RTS, CTS, GOODBYE, *WORDS} - WITH_PAYLOAD))),
    more=st.integers(1, 99),
)
def test_payload_where_there_is_none_is_refused(codec: Codec, header: Header, more: int) -> None:
    raw = encode(replace(header, payload=more))
    assert codec.decode(raw, swapped=NATIVE != "<") == "payload where there is none"
    raw = encode(Header(MSG, ACK, payload=more))
    assert codec.decode(raw, swapped=NATIVE != "<") == "payload where there is none"


@given(
    header=headers(st.sampled_from(sorted(WITH_REMOTE))),
    count=st.sampled_from([0, 5, 6, 255]),
    data=st.data(),
)
def test_remote_segments_that_cannot_be(
    codec: Codec, header: Header, count: int, data: st.DataObject
) -> None:
    swapped = NATIVE != "<"
    assert (
        codec.decode(encode(header, count=count), swapped=swapped)
        == "an impossible number of remote segments"
    )
    first, *rest = header.remote
    # A sum that is right again where it overflows.
    huge = ((first[0], 2**64 - header.length, first[2]), *rest, first)[:4]
    if len(huge) > 1 and header.length:
        wrong = codec.decode(encode(replace(header, remote=huge)), swapped=swapped)
        assert wrong == "remote segments of impossible length"
    more = replace(header, payload=header.payload + data.draw(st.integers(1, 1000)))
    assert (
        codec.decode(encode(more), swapped=swapped)
        == {
            READ: "payload where there is none",
            WRITE: "a write whose payload is not as long as its target",
            ATOMIC: "an atomic whose operands are not as long as its target",
        }[header.op]
    )


@given(header=headers(st.sampled_from(sorted(WITH_LENGTH))), length=st.integers(2**63, 2**64 - 1))
def test_an_announcement_of_an_impossible_length(codec: Codec, header: Header, length: int) -> None:
    assert (
        codec.decode(encode(replace(header, length=length)), swapped=NATIVE != "<") == "an impossible length"
    )


def test_an_atomic_whose_operands_have_no_length(codec: Codec) -> None:
    header = Header(ATOMIC, 7, payload=2**62, length=2**62, remote=((0, 2**62, 1),))
    wrong = codec.decode(encode(header), swapped=NATIVE != "<")
    assert wrong == "an atomic whose operands are not as long as its target"


@pytest.mark.parametrize("op_data", [1, 3, 255])
def test_a_message_of_an_unknown_kind(codec: Codec, op_data: int) -> None:
    assert codec.decode(encode(Header(MSG, op_data)), swapped=NATIVE != "<") == "an unknown kind of message"


# ------------------------------------------------------------------------------------------- control messages

CONNREQ, CONNRESP, NACK = 0, 1, 6
CONTROL = ">BBHIQQ"  # what lies behind is 1 in the sender's order


def control_bytes(
    type_: int, private: int, offer: int, capabilities: int, one: bytes, *, version: int = 3
) -> bytes:
    numbers = struct.pack("<QQ", offer, capabilities)
    return struct.pack(">BBHI", version, type_, private, 0) + numbers + one


def control_of(codec: Codec, raw: bytes) -> tuple[int, Any]:
    control = codec.ffi.new("struct tcp_control *")
    return int(codec.c.tcp_control_decode(codec.at_the_end(raw), control)), control


@given(
    type_=st.sampled_from([CONNREQ, CONNRESP, NACK]), private=st.integers(0, 256), offer=NUMBER, bits=NUMBER
)
def test_a_control_message_there_and_back(
    codec: Codec, type_: int, private: int, offer: int, bits: int
) -> None:
    one = struct.pack("=Q", type_ != NACK)
    raw = control_bytes(type_, private, offer, bits, one)
    given_ = codec.ffi.new("struct tcp_control *", {"type": type_, "private_size": private, "magic": offer})
    given_.capabilities = bits
    room = codec.ffi.new("uint8_t[32]", b"\xa5" * 32)
    codec.c.tcp_control_encode(given_, room)
    assert bytes(codec.ffi.buffer(room)) == raw
    result, control = control_of(codec, raw)
    assert result == 0
    assert (control.type, control.private_size) == (type_, private)
    assert (control.magic, control.capabilities) == (offer, bits)
    assert control.swapped == (type_ == NACK)


@given(
    raw=st.binary(min_size=32, max_size=32),
    version=st.one_of(st.just(3), BYTE),
    type_=BYTE,
    high=st.integers(0, 2),
)
def test_control_messages_that_cannot_be(
    codec: Codec, raw: bytes, version: int, type_: int, high: int
) -> None:
    raw = bytes([version, type_, high, *raw[3:]])
    possible = type_ in (CONNREQ, CONNRESP, NACK) and high * 256 + raw[3] <= 256
    result, control = control_of(codec, raw)
    assert result == (-errno.EPROTONOSUPPORT if version != 3 else 0 if possible else -errno.EPROTO)
    if result == 0:
        assert control.swapped == (raw[24:] != struct.pack("=Q", 1))


@given(version=BYTE, features=BYTE, port=st.integers(0, 0xFFFF), pid=st.integers(0, 2**32 - 1))
def test_the_data_of_a_datagram_endpoint(
    codec: Codec, version: int, features: int, port: int, pid: int
) -> None:
    raw = struct.pack(">BBHI", version, features, port, pid)
    rdm = codec.ffi.new("struct tcp_rdm *", (version, features, port, pid))
    room = codec.ffi.new("uint8_t[8]")
    codec.c.tcp_rdm_encode(rdm, room)
    assert bytes(codec.ffi.buffer(room)) == raw
    again = codec.ffi.new("struct tcp_rdm *")
    codec.c.tcp_rdm_decode(codec.at_the_end(raw), again)
    assert (again.version, again.features, again.port, again.pid) == (version, features, port, pid)


@given(version=BYTE, changed=st.integers(0, 7), value=BYTE)
def test_what_counts_as_an_offer_of_the_extension(
    codec: Codec, version: int, changed: int, value: int
) -> None:
    raw = bytearray(bytes([version]) + b"OFIPYTX")
    raw[changed] = value
    (offer,) = struct.unpack("<Q", raw)
    assert codec.c.wire_is_offer(offer) == (raw[0] != 0 and raw[1:] == b"OFIPYTX")


# ---------------------------------------------------------------------------------------- what libfabric sent


def vectors(codec: Codec, kind: str) -> Iterator[tuple[Any, bytes]]:
    look_up = getattr(codec.c, f"wire_{kind}_vector")
    index = 0
    while vector := look_up(index):
        yield vector, bytes.fromhex(codec.ffi.string(vector.bytes).decode())
        index += 1


def test_headers_of_libfabric(codec: Codec) -> None:
    ops = set()
    for vector, raw in vectors(codec, "header"):
        order = ">" if vector.swapped else "<"
        expected = codec.fields(codec.ffi.addressof(vector, "header"))
        assert decode(raw, order, extended=False) == expected
        assert codec.decode(raw, swapped=order != NATIVE, extended=False) == expected
        assert encode(expected, order, identifier=raw[7], count=vector.count_byte) == raw
        ops.add(expected.op)
    assert ops == set(range(HELLO))


def test_control_messages_of_libfabric(codec: Codec) -> None:
    types = set()
    for vector, raw in vectors(codec, "control"):
        result, control = control_of(codec, raw)
        assert result == 0
        assert (control.type, control.private_size) == (vector.type, vector.private_size)
        assert (control.magic, control.capabilities) == (0, 0)
        assert raw == control_bytes(vector.type, vector.private_size, 0, 0, raw[24:])
        assert control.swapped == (raw[24:] != struct.pack("=Q", 1))
        private = bytes.fromhex(codec.ffi.string(vector.private_data).decode())
        if vector.rdm.pid:
            rdm = vector.rdm
            assert struct.unpack(">BBHI", private) == (rdm.version, rdm.features, rdm.port, rdm.pid)
        types.add(vector.type)
    assert types == {CONNREQ, CONNRESP, NACK}
