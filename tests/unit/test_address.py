# SPDX-License-Identifier: BSD-3-Clause
"""Addresses as bytes, text and pickles; hostile bytes."""

import errno
import pickle
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ofipy
from ofipy._base.binding import ffi, lib
from ofipy._discovery.address import counted, host_id, resolve, split_host_port

ENTRIES = st.lists(
    st.tuples(st.text(min_size=1, max_size=20), st.binary(min_size=1, max_size=256)), min_size=1, max_size=5
).map(tuple)
SIXTEEN = st.binary(min_size=16, max_size=16)
ADDRESSES = st.builds(ofipy.Address, ENTRIES, SIXTEEN, SIXTEEN, st.booleans())

# What version 1 wrote for these: the bytes, and its pickle.
OLD = ofipy.Address((("shm", b"abc"), ("tcp", b"xyz")), bytes(range(16)))
OLD_BYTES = b"OFPA\x01\x02" + bytes(range(16)) + b"\x03shm\x03\x00abc\x03tcp\x03\x00xyz"
OLD_PICKLE = (
    b"\x80\x04\x95N\x00\x00\x00\x00\x00\x00\x00\x8c\x05ofipy\x94\x8c\x07Address\x94\x93\x94)\x81\x94]\x94(\x8c\x03shm"
    b"\x94C\x03abc\x94\x86\x94\x8c\x03tcp\x94C\x03xyz\x94\x86\x94\x86\x94C\x10\x00\x01\x02\x03\x04\x05\x06\x07\x08\t\n\x0b"
    b"\x0c\r\x0e\x0f\x94eb."
)


def written(address: ofipy.Address, version: int = 2) -> bytes:
    """The layout, written once more."""
    blob = b"OFPA" + bytes([version, len(address.entries)])
    if version == 2:
        blob += (1 if address.connects_only else 0).to_bytes(2, "little")
    blob += address.host + (address.identity if version == 2 else b"")
    for name, raw in address.entries:
        blob += bytes([len(name.encode())]) + name.encode() + len(raw).to_bytes(2, "little") + raw
    return blob


@given(address=ADDRESSES)
def test_round_trip(address: ofipy.Address) -> None:
    assert bytes(address) == written(address)
    for copy in (ofipy.Address.from_bytes(bytes(address)), pickle.loads(pickle.dumps(address))):
        assert copy == address
        assert hash(copy) == hash(address)
        assert (copy.entries, copy.host) == (address.entries, address.host)
        assert (copy.identity, copy.connects_only) == (address.identity, address.connects_only)
    for name, _ in address.entries:
        assert name == "link" or address.raw(name) == dict(reversed(address.entries))[name]
    assert address.raw("link") == address.raw("link:shm+tcp") == bytes(address)


@given(entries=ENTRIES, host=SIXTEEN)
def test_version_1_is_read(entries: tuple[tuple[str, bytes], ...], host: bytes) -> None:
    address = ofipy.Address(entries, host)
    read = ofipy.Address.from_bytes(written(address, version=1))
    assert bytes(read) == bytes(address)


def test_bytes_and_pickles_of_the_first_version() -> None:
    for read in (ofipy.Address.from_bytes(OLD_BYTES), pickle.loads(OLD_PICKLE)):
        assert read == OLD
        assert (read.host, read.identity, read.connects_only) == (OLD.host, bytes(16), False)


@given(address=ADDRESSES, data=st.data())
def test_damaged_bytes_are_refused(address: ofipy.Address, data: st.DataObject) -> None:
    for blob in (bytes(address), written(address, version=1)):
        cut = data.draw(st.integers(0, len(blob) - 1))
        with pytest.raises(ofipy.InvalidArgument):
            ofipy.Address.from_bytes(blob[:cut])
        with pytest.raises(ofipy.InvalidArgument):
            ofipy.Address.from_bytes(blob + b"x")


@given(st.binary(max_size=400))
def test_any_bytes_are_an_address_or_an_error(blob: bytes) -> None:
    for version, each in enumerate((blob, b"OFPA\x01" + blob, b"OFPA\x02" + blob)):
        try:
            address = ofipy.Address.from_bytes(each)
        except (ofipy.InvalidArgument, ofipy.IncompatiblePeer):
            continue
        assert written(address, version) == each


@pytest.mark.parametrize(
    ("version", "kind", "text"),
    [
        (0, ofipy.InvalidArgument, "not an address"),
        (
            3,
            ofipy.IncompatiblePeer,
            "speaks version 3 of addresses .* versions 1 to 2 .*update ofipy on this side",
        ),
    ],
)
def test_other_versions_are_refused(version: int, kind: type[ofipy.FabricError], text: str) -> None:
    blob = bytearray(bytes(ofipy.Address((("x", b"y"),))))
    blob[4] = version
    with pytest.raises(kind, match=text):
        ofipy.Address.from_bytes(bytes(blob))


def test_unknown_flags_are_refused() -> None:
    blob = bytearray(bytes(ofipy.Address((("x", b"y"),), connects_only=True)))
    blob[6] |= 4
    with pytest.raises(ofipy.InvalidArgument, match="flags 0x5"):
        ofipy.Address.from_bytes(bytes(blob))


@pytest.mark.parametrize(
    "entries",
    [(), (("", b"x"),), (("x", b""),), (("x", bytes(lib.OFP_ADDRESS_MAX + 1)),), (("n" * 256, b"x"),)],
)
def test_constructor_checks(entries: tuple[tuple[str, bytes], ...]) -> None:
    with pytest.raises(ofipy.InvalidArgument):
        ofipy.Address(entries)


@pytest.mark.parametrize("field", ["host", "identity"])
def test_constructor_checks_lengths(field: str) -> None:
    with pytest.raises(ofipy.InvalidArgument, match="16 bytes"):
        ofipy.Address((("x", b"y"),), **{field: bytes(15)})


@given(entries=ENTRIES, first=SIXTEEN, second=SIXTEEN)
def test_equality(entries: tuple[tuple[str, bytes], ...], first: bytes, second: bytes) -> None:
    one, other = ofipy.Address(entries, identity=first), ofipy.Address(entries, identity=second)
    assert (one == other) is (first == second or bytes(16) in (first, second))
    # Who does not know the identity means whoever is there.
    assert ofipy.Address(entries) == one
    assert hash(ofipy.Address(entries)) == hash(one)
    assert one != ofipy.Address((*entries, ("another", b"way")), identity=first)
    assert one != bytes(one)
    fewer = ofipy.Address(entries[:1], identity=first)
    assert fewer.same_endpoint(one) is (first != bytes(16) or len(entries) == 1)
    assert one.same_endpoint(other) is (one == other)


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_an_endpoint_that_was_opened_anew_is_another(provider: str) -> None:
    def address_at(service: str | None) -> tuple[ofipy.Address, str]:
        with ofipy.open(provider=provider, service=service) as ep:
            assert ep.address == ep.address
            assert ep.alias().address.identity == ep.address.identity != bytes(16)
            return ep.address, str(ep.address).rpartition(":")[2]

    service = "anew" if provider == "shm" else address_at(None)[1]
    first, second = address_at(service)[0], address_at(service)[0]
    assert first.entries == second.entries
    assert first != second


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


def test_an_address_of_several_ways_serves_each_of_them() -> None:
    with ofipy.open(provider="shm") as shm, ofipy.open(provider="tcp") as tcp:
        both = ofipy.Address(shm.address.entries + tcp.address.entries, host_id(), tcp.address.identity)
        assert shm.insert(bytes(both)) == shm.insert(shm.address)
        assert tcp.insert(bytes(both)) == tcp.insert(tcp.address)
        text = str(tcp.address).replace("tcp://", "link://")
        assert tcp.insert(text) == tcp.insert(tcp.address)


def test_the_first_address_that_is_reached_is_taken() -> None:
    with ofipy.open(provider="tcp", node="127.0.0.1") as ep:
        far = socket.AF_INET6.to_bytes(2, "little") + (7471).to_bytes(2, "big") + bytes(23) + b"\x01"
        raw = ep.address.raw("tcp")
        with pytest.raises(ofipy.Unreachable):
            ep.insert(ofipy.Address((("tcp", far),)))
        assert ep.insert(ofipy.Address((("tcp", far), ("tcp", raw)))) == ep.insert(raw)


def test_who_does_not_listen_is_refused_by_name() -> None:
    with ofipy.open(provider="shm") as shm, ofipy.open(provider="tcp") as tcp:
        if not tcp.info.caps & ofipy.Cap.REMOTE_COMM:
            pytest.skip("there is no other interface here")
        quiet = ofipy.Address(shm.address.entries + tcp.address.entries, host_id(), connects_only=True)
        assert shm.insert(quiet) == shm.insert(shm.address)
        for where in (quiet, bytes(quiet)):
            with pytest.raises(
                ofipy.Unreachable, match=r"does not listen.*node=.*OFIPY_INTERFACE.*OFIPY_AUTH_KEY_FILE"
            ):
                tcp.insert(where)


def test_a_host_with_many_addresses_fits() -> None:
    entries = (("shm", bytes(64)), *(("tcp", bytes([number]) * 28) for number in range(32)))
    assert len(bytes(ofipy.Address(entries))) <= lib.OFP_ADDRESS_MAX


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

    monkeypatch.setattr("ofipy._discovery.address.lib", Blind())
    assert host_id() == bytes(16)


def test_a_setting_parts_processes_of_one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    with ofipy.open(provider="shm") as here:
        real = host_id()
        monkeypatch.setenv("OFIPY_HOST_ID", "elsewhere")
        with ofipy.open(provider="shm") as there:
            assert there.address.host == host_id() == there.address.raw("shm")[8:16] + bytes(8)
            assert host_id() != real
            for one, other in ((here, there), (there, here)):
                assert one.insert(one.address) == 0
                with pytest.raises(ofipy.Unreachable, match="another host"):
                    one.insert(other.address)
        monkeypatch.delenv("OFIPY_HOST_ID")
        assert host_id() == real


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


@pytest.mark.parametrize("provider", ["link", "shm", "tcp"])
def test_an_address_is_shown_without_memory_for_an_info(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that could return no info gets none, and says no more than that."""
    with ofipy.open(provider=provider) as ep:
        monkeypatch.setattr("ofipy._discovery.providers.any_info", lambda name: ffi.NULL)
        assert "://" in str(ep.address)
