# SPDX-License-Identifier: BSD-3-Clause
"""Addresses as programs exchange them: bytes, text, or a pickle.

Layout of the bytes, little-endian: magic ``OFPA``, version, number of entries, 16 bytes of host id; then for
each provider: length of its name, name, length of the address (2 bytes), address.
"""

import ipaddress
import struct
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Self

from ofipy import _providers
from ofipy._binding import Text, check, ffi, lib
from ofipy._errors import InvalidArgument, ProviderUnavailable, Unreachable
from ofipy._objects import plain_bytes

if TYPE_CHECKING:
    from ofipy._info import Info

__all__ = ["Address", "counted", "host_id", "resolve"]

MAGIC = b"OFPA"
VERSION = 1
_HEAD = struct.Struct("<4sBB16s")
_SIZE = struct.Struct("<H")


@cache
def host_id() -> bytes:
    """16 bytes, the same for two processes only if they share boot and network namespace; zeros: not known."""
    number, why = ffi.new("uint64_t *"), Text()
    if lib.ofp_host_id(number, why.pointer, why.size) < 0:
        return bytes(16)
    return int(number[0]).to_bytes(16, "little")


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """Where an endpoint can be reached, by one provider or several; its bytes and its text travel.

    Raises
    ------
    InvalidArgument
        When there is no entry, or one is too long.
    """

    entries: tuple[tuple[str, bytes], ...]
    """Provider and raw address, the preferred first."""
    host: bytes = field(default=bytes(16), compare=False)
    """Host id of the endpoint; zeros when it is not known."""

    def __post_init__(self) -> None:
        if not 0 < len(self.entries) < 256 or len(self.host) != 16:
            raise InvalidArgument("an address has 1 to 255 entries and a host id of 16 bytes")
        for name, raw in self.entries:
            if not 0 < len(name.encode()) < 256 or not 0 < len(raw) <= lib.OFP_ADDRESS_MAX:
                raise InvalidArgument(f"an address entry of {len(raw)} bytes for provider {name!r}")

    def __bytes__(self) -> bytes:
        parts = [_HEAD.pack(MAGIC, VERSION, len(self.entries), self.host)]
        for name, raw in self.entries:
            encoded = name.encode()
            parts += [bytes([len(encoded)]), encoded, _SIZE.pack(len(raw)), raw]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Read what ``bytes(address)`` wrote.

        Raises
        ------
        InvalidArgument
            When it is no such thing, cut off, or of a later version.
        BufferTypeError
            When it is no bytes at all.
        """
        blob = plain_bytes(blob, "from_bytes")
        try:
            magic, version, count, host = _HEAD.unpack_from(blob)
            if magic != MAGIC or version != VERSION:
                raise InvalidArgument(f"not an address of version {VERSION}: it begins {blob[:5]!r}")
            entries, position = [], _HEAD.size
            for _ in range(count):
                name_end = position + 1 + blob[position]
                name = blob[position + 1 : name_end].decode()
                (size,) = _SIZE.unpack_from(blob, name_end)
                position = name_end + _SIZE.size + size
                if position > len(blob):
                    raise IndexError
                entries.append((name, blob[position - size : position]))
        except (struct.error, IndexError, UnicodeDecodeError):
            raise InvalidArgument(f"an address of {len(blob)} bytes that is cut off or damaged") from None
        if position != len(blob):
            raise InvalidArgument(f"{len(blob) - position} bytes too many behind an address")
        return cls(tuple(entries), host)

    def raw(self, provider: str) -> bytes:
        """The address as this provider writes it.

        Raises
        ------
        Unreachable
            When the endpoint is not reachable by this provider.
        """
        for name, raw in self.entries:
            if name == provider:
                return raw
        names = ", ".join(name for name, _ in self.entries)
        raise Unreachable(
            f"the peer cannot be reached over {provider}, only over {names}",
            remedy="open both with the same provider",
        )

    def __str__(self) -> str:
        name, raw = self.entries[0]
        return _format(name, raw)

    def __repr__(self) -> str:
        return f"<Address {self}>"


def scheme_of(provider: str) -> str:
    """The part of a URI before ``://``: ``ofi+tcp`` for the provider ``ofi:tcp``."""
    return provider.replace(":", "+").replace(";", "+")


def _format(name: str, raw: bytes) -> str:
    try:
        handle, text = _providers.load(name).handle, Text()
        info = _providers.any_info(name)
        check(lib.ofp_provider_address_format(handle, info, raw, len(raw), text.pointer, text.size))
    except (ProviderUnavailable, InvalidArgument):
        return f"{scheme_of(name)}://[{raw.hex()}]"
    return f"{scheme_of(name)}://{text}"


def resolve(
    provider: str, where: Address | bytes | bytearray | memoryview | str, info: "Info | None" = None
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
    raw = _raw(provider, where, record)
    if record is not None:
        handle, why = _providers.load(provider).handle, Text()
        result = lib.ofp_provider_reaches(handle, record, raw, len(raw), why.pointer, why.size)
        check(result, text=why, operation="resolve", provider=provider, peer=_written(where))
    return raw


def _written(where: Address | bytes | bytearray | memoryview | str) -> str | None:
    """What a person can read of it."""
    return str(where) if isinstance(where, Address | str) else None


def _raw(provider: str, where: Address | bytes | bytearray | memoryview | str, record: Any) -> bytes:
    if isinstance(where, Address):
        return where.raw(provider)
    if isinstance(where, str):
        return _resolve_text(provider, where, record)
    if not isinstance(where, bytes | bytearray | memoryview):
        raise InvalidArgument(f"{where!r} as an address; an Address, its bytes, a URI or host:port is meant")
    blob = bytes(where)
    if blob.startswith(MAGIC):
        return Address.from_bytes(blob).raw(provider)
    handle = _providers.load(provider).handle
    known = record if record is not None else _providers.any_info(provider)
    if lib.ofp_provider_address_check(handle, known, blob, len(blob)) < 0:
        raise InvalidArgument(
            f"{len(blob)} bytes that are not an address of provider {provider}", provider=provider
        )
    return blob


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
    if separator and scheme != scheme_of(provider):
        raise Unreachable(
            f"{text} is an address of provider {scheme}",
            provider=provider,
            peer=text,
            remedy=f"open the endpoint with provider={scheme!r}",
        )
    host, service = split_host_port(rest if separator else text)
    address, length, why = (
        ffi.new("char[]", lib.OFP_ADDRESS_MAX),
        ffi.new("size_t *", lib.OFP_ADDRESS_MAX),
        Text(),
    )
    node = host.encode() if host is not None else ffi.NULL
    handle = _providers.load(provider).handle
    known = record if record is not None else _providers.any_info(provider)
    result = lib.ofp_provider_resolve(
        handle, known, node, service.encode(), address, length, why.pointer, why.size
    )
    check(result, text=why, operation="resolve", provider=provider, peer=text)
    return bytes(ffi.buffer(address, length[0]))
