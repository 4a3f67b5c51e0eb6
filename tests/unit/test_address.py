# SPDX-License-Identifier: BSD-3-Clause
"""Addresses as bytes, text and pickles; hostile bytes."""

import errno
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ofipy
from ofipy._address import counted, host_id, resolve, split_host_port

ENTRIES = st.lists(
    st.tuples(st.text(min_size=1, max_size=20), st.binary(min_size=1, max_size=256)), min_size=1, max_size=5
).map(tuple)


@given(entries=ENTRIES, host=st.binary(min_size=16, max_size=16))
def test_round_trip(entries: tuple[tuple[str, bytes], ...], host: bytes) -> None:
    address = ofipy.Address(entries, host)
    copy = ofipy.Address.from_bytes(bytes(address))
    assert copy == address
    assert copy.host == host
    assert hash(copy) == hash(address)
    assert pickle.loads(pickle.dumps(address)) == address
    for name, _ in entries:
        assert address.raw(name) == dict(reversed(entries))[name]


@given(entries=ENTRIES, data=st.data())
def test_damaged_bytes_are_refused(entries: tuple[tuple[str, bytes], ...], data: st.DataObject) -> None:
    blob = bytes(ofipy.Address(entries))
    cut = data.draw(st.integers(0, len(blob) - 1))
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.Address.from_bytes(blob[:cut])
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.Address.from_bytes(blob + b"x")


@given(st.binary(max_size=400))
def test_any_bytes_are_an_address_or_an_error(blob: bytes) -> None:
    for each in (blob, b"OFPA\x01" + blob):
        try:
            address = ofipy.Address.from_bytes(each)
        except ofipy.InvalidArgument:
            continue
        assert bytes(address) == each


def test_other_versions_are_refused() -> None:
    blob = bytearray(bytes(ofipy.Address((("x", b"y"),))))
    blob[4] = 2
    with pytest.raises(ofipy.InvalidArgument, match="version 1"):
        ofipy.Address.from_bytes(bytes(blob))


@pytest.mark.parametrize(
    "entries", [(), (("", b"x"),), (("x", b""),), (("x", bytes(257)),), (("n" * 256, b"x"),)]
)
def test_constructor_checks(entries: tuple[tuple[str, bytes], ...]) -> None:
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.Address(entries)


def test_provider_that_is_not_installed() -> None:
    address = ofipy.Address((("nowhere", b"\x01\x02"),))
    assert str(address) == "nowhere://[0102]"
    assert "nowhere" in repr(address)
    with pytest.raises(ofipy.Unreachable, match="only over nowhere"):
        address.raw("other")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host:7471", ("host", "7471")),
        (":7471", (None, "7471")),
        ("[::1]:5", ("::1", "5")),
        ("h:name", ("h", "name")),
    ],
)
def test_host_and_port(text: str, expected: tuple[str | None, str]) -> None:
    assert split_host_port(text) == expected


@pytest.mark.parametrize("text", ["host", "host:", "", ":"])
def test_no_port(text: str) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="host:port"):
        split_host_port(text)


def test_wrong_kinds() -> None:
    for wrong in (5, None, ["host:1"]):
        with pytest.raises(ofipy.InvalidArgument, match="as an address"):
            resolve("x", wrong)  # type: ignore[arg-type]
    with pytest.raises(ofipy.Unreachable, match="provider='b'"):
        resolve("a", "b://host:1")


def test_host_id_is_stable() -> None:
    assert host_id() == host_id()
    assert len(host_id()) == 16


def test_host_id_is_that_of_shm() -> None:
    with ofipy.open(provider="shm") as ep:
        assert ep.address.host == host_id() == ep.address.raw("shm")[8:16] + bytes(8)


def test_an_unknown_host_has_the_id_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind:
        def ofp_host_id(self, number: object, text: object, size: int) -> int:
            return -errno.EACCES

    monkeypatch.setattr("ofipy._address.lib", Blind())
    assert host_id.__wrapped__() == bytes(16)


@pytest.mark.parametrize(
    ("first", "count", "names"),
    [
        ("node", 1, ["node"]),
        ("node8", 3, ["node8", "node9", "node10"]),
        ("rack1-node08", 3, ["rack1-node08", "rack1-node09", "rack1-node10"]),
        ("7471", 2, ["7471", "7472"]),
        ("10.0.0.255", 2, ["10.0.0.255", "10.0.1.0"]),
        ("fe80::ffff", 2, ["fe80::ffff", "fe80::1:0"]),
    ],
)
def test_names_that_count_up(first: str, count: int, names: list[str]) -> None:
    assert counted(first, count) == names


@pytest.mark.parametrize(("first", "count"), [("node", 2), ("", 2), ("node1", 0), ("255.255.255.255", 2)])
def test_names_that_do_not(first: str, count: int) -> None:
    with pytest.raises(ofipy.InvalidArgument):
        counted(first, count)


@pytest.mark.parametrize("kind", [ofipy.Address, ofipy.RemoteRegion])
@pytest.mark.parametrize("blob", [2**64, 2**40, 5, "text", None, [1, 2]])
def test_what_is_no_bytes_is_refused_by_name(kind: Any, blob: Any) -> None:
    with pytest.raises(ofipy.BufferTypeError, match=f"{type(blob).__name__}; bytes are meant"):
        kind.from_bytes(blob)
