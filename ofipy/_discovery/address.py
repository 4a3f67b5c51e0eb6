# SPDX-License-Identifier: BSD-3-Clause
"""Addresses as programs exchange them: bytes, text, or a pickle.

Layout of the bytes, little-endian: magic ``OFPA``, version, number of entries; flags (2 bytes), 16 bytes of host id,
16 of the endpoint's identity; then for each entry: length of the provider's name, name, length of the address (2
bytes), address. Version 1 had neither flags nor identity.
"""

from __future__ import annotations

import errno as codes
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ofipy._base.binding import Text, check, failure, ffi, lib
from ofipy._base.contents import plain_bytes
from ofipy._base.errors import InvalidArgument, ProviderUnavailable, Unreachable
from ofipy._base.record import Record, set_field
from ofipy._base.versions import Versions
from ofipy._discovery import providers

if TYPE_CHECKING:
    from ofipy._discovery.info import Info

__all__ = ["Address", "address_of_endpoint", "counted", "host_id", "read_name", "resolve"]

MAGIC = b"OFPA"
VERSION = 2
_START = struct.Struct("<4sBB")
_SIZE = struct.Struct("<H")
_CONNECTS_ONLY = 1
_UNKNOWN = bytes(16)


def host_id() -> bytes:
    """16 bytes, the same for two processes only if they share boot and network namespace; zeros: not known.

    Two that differ in ``OFIPY_HOST_ID`` have different ones.
    """
    number, why = ffi.new("uint64_t *"), Text()
    if lib.ofp_host_id(number, why.pointer, why.size) < 0:
        return _UNKNOWN
    return int(number[0]).to_bytes(16, "little")


class Address(Record):
    """Where an endpoint can be reached, by one provider or several; its bytes and its text travel.

    Two are equal when they have the same entries, and not two different identities: an endpoint that was opened anew in
    the same place is another one.

    Raises
    ------
    InvalidArgument
        When there is no entry, or one is too long.
    """

    entries: tuple[tuple[str, bytes], ...]
    """Provider and raw address, the preferred first. A provider may have several."""
    host: bytes
    """Host id of the endpoint; zeros when it is not known."""
    identity: bytes
    """16 random bytes, which no other endpoint has that was or will be there; zeros when they are not known."""
    connects_only: bool
    """Nobody connects to it over a network: it connects to others, and they answer on that connection."""
    _over_several: bool
    """An endpoint over several ways calls it so, though it may know one entry only."""

    def __init__(
        self,
        entries: tuple[tuple[str, bytes], ...],
        host: bytes = _UNKNOWN,
        identity: bytes = _UNKNOWN,
        connects_only: bool = False,
    ) -> None:
        set_field(self, "entries", entries)
        set_field(self, "host", host)
        set_field(self, "identity", identity)
        set_field(self, "connects_only", connects_only)
        set_field(self, "_over_several", False)
        if not 0 < len(entries) < 256 or len(host) != 16 or len(identity) != 16:
            raise InvalidArgument(
                "an address has 1 to 255 entries, and a host id and an identity of 16 bytes"
            )
        for name, raw in entries:
            if not 0 < len(name.encode()) < 256 or not 0 < len(raw) <= lib.OFP_ADDRESS_MAX:
                raise InvalidArgument(f"an address entry of {len(raw)} bytes for provider {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Address):
            return NotImplemented
        return self.entries == other.entries and (
            self.identity == other.identity or _UNKNOWN in (self.identity, other.identity)
        )

    def __hash__(self) -> int:
        return hash(self.entries)

    def same_endpoint(self, other: Address) -> bool:
        """Whether both are of one endpoint, as far as they tell: by identity, else by their entries.

        Who has called over one of several ways is known by that one alone, so the address of such a peer has fewer
        entries than what the peer says of itself.

        Parameters
        ----------
        other : Address
            To compare with.
        """
        if _UNKNOWN in (self.identity, other.identity):
            return self.entries == other.entries
        return self.identity == other.identity

    def __setstate__(self, state: list[Any]) -> None:
        # What a pickle of version 1 holds, which ends with the host.
        Address.__init__(self, *state)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.entries, self.host, self.identity, self.connects_only)

    def __bytes__(self) -> bytes:
        flags = _CONNECTS_ONLY if self.connects_only else 0
        parts = [_START.pack(MAGIC, VERSION, len(self.entries)), _SIZE.pack(flags), self.host, self.identity]
        for name, raw in self.entries:
            encoded = name.encode()
            parts += [bytes([len(encoded)]), encoded, _SIZE.pack(len(raw)), raw]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Read what ``bytes(address)`` wrote, here or in an earlier version.

        Raises
        ------
        InvalidArgument
            When it is no such thing, or cut off.
        IncompatiblePeer
            When it is of a later version.
        BufferTypeError
            When it is no bytes at all.
        """
        blob = plain_bytes(blob, "from_bytes")
        reader = _Reader(blob)
        try:
            magic, version, count = _START.unpack(reader.take(_START.size))
            if magic != MAGIC or version == 0:
                raise InvalidArgument(f"not an address: it begins {blob[:5]!r}")
            if version > VERSION:
                raise Versions(VERSION, VERSION - 1).incompatible(Versions(version), "addresses as bytes")
            flags = reader.size() if version > 1 else 0
            host = reader.take(16)
            identity = reader.take(16) if version > 1 else _UNKNOWN
            entries = tuple(
                (reader.take(reader.byte()).decode(), reader.take(reader.size())) for _ in range(count)
            )
        except (IndexError, UnicodeDecodeError):
            raise InvalidArgument(
                f"an address of {len(blob)} bytes that is cut off or damaged",
                remedy="pass what bytes(endpoint.address) is at the peer, unchanged",
            ) from None
        if flags & ~_CONNECTS_ONLY:
            raise InvalidArgument(
                f"an address with flags {flags:#x}; this ofipy knows {_CONNECTS_ONLY:#x}",
                remedy="the peer has a later ofipy: upgrade this one",
            )
        if reader.left():
            raise InvalidArgument(
                f"{reader.left()} bytes too many behind an address",
                remedy="pass what bytes(endpoint.address) is at the peer, unchanged",
            )
        return cls(entries, host, identity, bool(flags & _CONNECTS_ONLY))

    @classmethod
    def named(cls, provider: str, name: bytes, *, host: bytes = _UNKNOWN, identity: bytes = _UNKNOWN) -> Self:
        """The address behind what a provider calls an endpoint."""
        if not is_link(provider):
            return cls(((provider, name),), host, identity)
        address = cls.from_bytes(name)
        set_field(address, "_over_several", True)
        return address

    def raw(self, provider: str) -> bytes:
        """The address as this provider writes it: its first one; for ``link`` the whole, ``bytes(address)``.

        Raises
        ------
        Unreachable
            When the endpoint is not reachable by this provider.
        """
        return self._raw_of(provider)[0]

    def _raw_of(self, provider: str) -> list[bytes]:
        """All of this provider, at least one."""
        found = [raw for name, raw in self.entries if name == provider]
        if is_link(provider):
            found = [bytes(self)]
        if found:
            return found
        names = ", ".join(dict.fromkeys(name for name, _ in self.entries))
        raise Unreachable(
            f"the peer cannot be reached over {provider}, only over {names}",
            remedy="open both with the same provider",
        )

    def __str__(self) -> str:
        name, raw = self.entries[0]
        over_several = self._over_several or any(other != name for other, _ in self.entries)
        text = _format("link", bytes(self)) if over_several or self.connects_only else None
        return text or _format(name, raw) or f"{scheme_of(name)}://[{raw.hex()}]"

    def __repr__(self) -> str:
        return f"<Address {self}>"


class _Reader:
    """Takes a blob apart from the front; IndexError where it is too short."""

    def __init__(self, blob: bytes) -> None:
        self._blob = blob
        self._position = 0

    def take(self, size: int) -> bytes:
        self._position += size
        if self._position > len(self._blob):
            raise IndexError
        return self._blob[self._position - size : self._position]

    def byte(self) -> int:
        return self.take(1)[0]

    def size(self) -> int:
        return int.from_bytes(self.take(2), "little")

    def left(self) -> int:
        return len(self._blob) - self._position


def read_name(call: Callable[[Any, Any], int], operation: str, provider: str) -> bytes:
    """What a C function wrote that takes room for an address and its length."""
    room, length = ffi.new("char[]", lib.OFP_ADDRESS_MAX), ffi.new("size_t *", lib.OFP_ADDRESS_MAX)
    check(call(room, length), operation=operation, provider=provider)
    return bytes(ffi.buffer(room, length[0]))


def address_of_endpoint(pointer: Any, provider: str) -> Address:
    """The own address of an endpoint, with everything that it says of itself."""
    name = read_name(lambda *room: lib.ofp_endpoint_address(pointer, *room), "address", provider)
    identity = ffi.new("uint8_t[]", lib.OFP_IDENTITY_SIZE)
    lib.ofp_endpoint_identity(pointer, identity)
    first = Address.named(provider, name, host=host_id(), identity=bytes(identity))
    others = tuple((provider, raw) for raw in _other_names(pointer))
    return Address(first.entries + others, first.host, first.identity, first.connects_only)


def _other_names(pointer: Any) -> Iterator[bytes]:
    number = 0
    while True:
        room, length = ffi.new("char[]", lib.OFP_ADDRESS_MAX), ffi.new("size_t *", lib.OFP_ADDRESS_MAX)
        result = lib.ofp_endpoint_address_also(pointer, number, room, length)
        if result == -codes.ENOENT:
            return
        check(result, operation="address")
        yield bytes(ffi.buffer(room, length[0]))
        number += 1


def is_link(provider: str) -> bool:
    """Whether it goes over several others, and its addresses have those of them all."""
    return providers.entry_of(provider) == "link"


def scheme_of(provider: str) -> str:
    """The part of a URI before ``://``: ``ofi+tcp`` for the provider ``ofi:tcp``."""
    return "link" if is_link(provider) else provider.replace(":", "+").replace(";", "+")


def _provider_of(scheme: str) -> str:
    entry, _, rest = scheme.partition("+")
    return f"{entry}:{rest.replace('+', ';')}" if rest else entry


def _format(name: str, raw: bytes) -> str | None:
    """The address as a URI; None where that provider is not here, or does not know it."""
    try:
        handle, text = providers.load(name).handle, Text()
        info = providers.any_info(name)
        check(lib.ofp_provider_address_format(handle, info, raw, len(raw), text.pointer, text.size))
    except (ProviderUnavailable, InvalidArgument):
        return None
    return f"{scheme_of(name)}://{text}"


def resolve(
    provider: str, where: Address | bytes | bytearray | memoryview | str, info: Info | None = None
) -> bytes:
    """Raw address of what a person or a peer wrote.

    Parameters
    ----------
    provider : str
        The provider that will use it.
    where : Address, bytes or str
        An address, its bytes, a URI such as ``shm://localhost:7471``, ``host:port``, or the provider's raw
        address.
    info : Info, optional
        Of the domain that will use it: names mean what they mean there, and what cannot be reached from there is
        refused. Default: the provider's first.

    Raises
    ------
    InvalidArgument
        When it cannot be understood.
    Unreachable
        When this provider, or this domain, cannot reach it.
    """
    record = ffi.from_buffer("struct ofp_info *", info._record) if info is not None else None
    candidates = _candidates(provider, where, record)
    if record is None:
        return candidates[0]
    handle, why, result = providers.load(provider).handle, Text(), 0
    for raw in candidates:
        result = lib.ofp_provider_reaches(handle, record, raw, len(raw), why.pointer, why.size)
        if result >= 0:
            return raw
    raise failure(result, text=str(why), operation="resolve", provider=provider, peer=_written(where))


def _written(where: Address | bytes | bytearray | memoryview | str) -> str | None:
    """What a person can read of it."""
    return str(where) if isinstance(where, Address | str) else None


def _candidates(
    provider: str, where: Address | bytes | bytearray | memoryview | str, record: Any
) -> list[bytes]:
    """Raw addresses of one endpoint, any of which will do; at least one."""
    if isinstance(where, Address):
        _check_listens(where, provider, record)
        return where._raw_of(provider)
    if isinstance(where, str):
        return [_resolve_text(provider, where, record)]
    if not isinstance(where, bytes | bytearray | memoryview):
        raise InvalidArgument(f"{where!r} as an address; an Address, its bytes, a URI or host:port is meant")
    blob = bytes(where)
    if blob.startswith(MAGIC):
        return _candidates(provider, Address.from_bytes(blob), record)
    info = _info(provider, record)
    if lib.ofp_provider_address_check(providers.load(provider).handle, info, blob, len(blob)) < 0:
        raise InvalidArgument(
            f"{len(blob)} bytes that are not an address of provider {provider}", provider=provider
        )
    return [blob]


def _info(provider: str, record: Any) -> Any:
    return record if record is not None else providers.any_info(provider)


def _leaves_the_host(provider: str, record: Any) -> bool:
    info = _info(provider, record)
    return bool(info) and bool(info.caps & lib.OFP_CAP_REMOTE_COMM)


def _check_listens(address: Address, provider: str, record: Any) -> None:
    """Refuse to connect to who says that it does not listen; over several ways C knows which of them it is."""
    if address.connects_only and not is_link(provider) and _leaves_the_host(provider, record):
        raise Unreachable(
            "the peer does not listen to the network: it connects to others, and nobody connects to it",
            operation="resolve",
            provider=provider,
            peer=str(address),
            remedy="on its side give node=, or set OFIPY_INTERFACE or OFIPY_AUTH_KEY_FILE, or let it connect here",
        )


def counted(first: str, count: int) -> list[str]:
    """Names from one that ends with a number, whose width is kept, or IP addresses from the first one.

    Raises
    ------
    InvalidArgument
        When there is no number to count up.
    """
    if count < 1:
        raise InvalidArgument(f"{count} of {first!r}; 1 or more is meant")
    if count == 1:
        return [first]
    import ipaddress

    try:
        address = ipaddress.ip_address(first)
    except ValueError:
        address = None
    if address is not None:
        try:
            return [str(address + step) for step in range(count)]
        except ValueError as error:
            raise InvalidArgument(f"{count} addresses from {first} on: {error}") from None
    stem = first.rstrip("0123456789")
    digits = first[len(stem) :]
    if not digits:
        raise InvalidArgument(f"{first!r} ends without a number that could count up to {count}")
    return [f"{stem}{int(digits) + step:0{len(digits)}}" for step in range(count)]


def split_host_port(text: str) -> tuple[str | None, str]:
    """Host and service of ``host:port``, ``[v6]:port`` or ``:port``; no host means this one."""
    host, colon, service = text.rpartition(":")
    if not colon or not service:
        raise InvalidArgument(f"{text!r} as an address; host:port is meant")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host or None, service


def _resolve_text(provider: str, text: str, record: Any) -> bytes:
    scheme, separator, rest = text.partition("://")
    if separator and scheme not in (scheme_of(provider), "link"):
        return _resolve_other(provider, scheme, text)
    host, service = split_host_port(rest if separator else text)
    node, why = host.encode() if host is not None else ffi.NULL, Text()
    room, length = ffi.new("char[]", lib.OFP_ADDRESS_MAX), ffi.new("size_t *", lib.OFP_ADDRESS_MAX)
    handle = providers.load(provider).handle
    result = lib.ofp_provider_resolve(
        handle, _info(provider, record), node, service.encode(), room, length, why.pointer, why.size
    )
    check(result, text=why, operation="resolve", provider=provider, peer=text)
    return bytes(ffi.buffer(room, length[0]))


def _resolve_other(provider: str, scheme: str, text: str) -> bytes:
    """An address of another provider, which may be one of several ways."""
    if not is_link(provider):
        raise Unreachable(
            f"{text} is an address of provider {scheme}",
            provider=provider,
            peer=text,
            remedy=f"open the endpoint with provider={scheme!r}",
        )
    way = _provider_of(scheme)
    host = _UNKNOWN if _leaves_the_host(way, None) else host_id()
    return bytes(Address(((way, _resolve_text(way, text, None)),), host))
