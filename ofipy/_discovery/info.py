# SPDX-License-Identifier: BSD-3-Clause
"""What is available here: one :class:`Info` for every kind of endpoint of every provider (fi_getinfo(3))."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

from ofipy._base import config
from ofipy._base.binding import Text, check, drain_log, ffi, lib
from ofipy._base.errors import ProviderUnavailable
from ofipy._base.flags import Cap, Encryption, EndpointType, Order, PeerProof, parse_enum, parse_flags
from ofipy._base.record import Record
from ofipy._discovery import providers

__all__ = ["LEFT_OUT", "AddressFormat", "Explanation", "Info", "configured_providers", "details", "getinfo"]


class AddressFormat(enum.Enum):
    """Form of a provider's raw addresses."""

    SHM = lib.OFP_ADDRESS_SHM
    IPV4 = lib.OFP_ADDRESS_IPV4
    IPV6 = lib.OFP_ADDRESS_IPV6
    OPAQUE = lib.OFP_ADDRESS_OPAQUE


class Info(Record):
    """What one provider can do on one device with one kind of endpoint. Sizes are in bytes."""

    provider: str
    fabric: str
    """Network that the device is on."""
    domain: str
    """Device."""
    protocol: str
    protocol_version: int
    ep_type: EndpointType
    caps: Cap
    emulated_caps: Cap
    """Those of `caps` that the core adds to the transport."""
    msg_order: Order
    max_msg_size: int
    max_rma_size: int
    max_atomic_size: int
    rma_order: Order
    """In which order the bytes of RMA operations take effect."""
    atomic_order: Order
    inject_size: int
    """Largest message of an inject."""
    tx_size: int
    """Operations in flight before a raw post is told to try again."""
    rx_size: int
    segment_limit: int
    """Local scatter-gather entries of one operation."""
    remote_segment_limit: int
    cq_data_size: int
    mr_key_size: int
    max_private_data: int
    """Private data of a connection request."""
    address_format: AddressFormat
    wait_fd: bool
    """The transport has a descriptor that tells of work; without, whoever sleeps on a queue looks by the clock."""
    offloads_matching: bool
    """The transport matches receives itself."""
    rank: int
    """Order among the provider's own infos, best first."""
    peer_proof: PeerProof
    """What peers must prove; of ``link``, the weakest of its parts."""
    encryption: Encryption
    """What ``OFIPY_ENCRYPTION=required`` means; of ``link``, the weakest of its parts."""
    _record: bytes


class Explanation(Record):
    """Why a provider is, or is not, among the answers of :func:`getinfo`."""

    provider: str
    description: str | None
    """One line; None when its shared object cannot be loaded."""
    version: str | None
    infos: tuple[Info, ...]
    """Those that fit the hints."""
    reason: str | None
    """Why there are none, and what to do; None when there are some."""


@overload
def getinfo(
    *,
    provider: str | Sequence[str] | None = None,
    ep_type: EndpointType | str | None = None,
    caps: Cap | str | Iterable[Cap | str] | None = None,
    domain: str | None = None,
    explain: Literal[False] = False,
) -> list[Info]: ...


@overload
def getinfo(
    *,
    provider: str | Sequence[str] | None = None,
    ep_type: EndpointType | str | None = None,
    caps: Cap | str | Iterable[Cap | str] | None = None,
    domain: str | None = None,
    explain: Literal[True],
) -> list[Explanation]: ...


def getinfo(
    *,
    provider: str | Sequence[str] | None = None,
    ep_type: EndpointType | str | None = None,
    caps: Cap | str | Iterable[Cap | str] | None = None,
    domain: str | None = None,
    explain: bool = False,
) -> list[Info] | list[Explanation]:
    """Ask every provider what it can do here.

    Parameters
    ----------
    provider : str or sequence of str, optional
        Names, one, several, or several with commas. Default: ``OFIPY_PROVIDER``, else all. ``ofi`` is every
        provider of libfabric, ``ofi:tcp`` one of them.
    ep_type : EndpointType or str, optional
        Kind of endpoint. Default: any.
    caps : Cap, str or iterable of either, optional
        Capabilities that must be there.
    domain : str, optional
        Device. Default: any.
    explain : bool
        Return an :class:`Explanation` for every provider, also of those that were left out.

    Returns
    -------
    list of Info, or list of Explanation
        The preferred provider first. Empty when nothing fits.

    Raises
    ------
    ProviderUnavailable
        When a provider of a name that was given does not exist.
    """
    wanted = configured_providers(provider)
    hints = _Hints(
        parse_enum(EndpointType, ep_type) if ep_type is not None else None, parse_flags(Cap, caps), domain
    )
    if not explain:
        return [info for name in wanted or providers.ordered_names() for info in _explain(name, hints).infos]
    result = []
    for entry in providers.ordered_names():
        chosen = [name for name in wanted if providers.entry_of(name) == entry]
        if wanted and not chosen:
            result.append(_left_out(entry))
        else:
            result += [_explain(name, hints) for name in chosen or [entry]]
    return result


def configured_providers(provider: str | Sequence[str] | None) -> list[str]:
    """Names that were asked for, by argument or configuration; none: no choice was made."""
    providers.configure()
    if provider is None:
        provider = config.value("PROVIDER")
    if provider is None:
        return []
    names = [name.strip() for name in provider.split(",")] if isinstance(provider, str) else list(provider)
    for name in names:
        if not providers.is_known(name):
            providers.load(name)  # raises, with the known names
    return names


LEFT_OUT = "left out: another provider was asked for"
"""The reason of a provider that was not asked."""


class _Hints:
    __slots__ = ("caps", "domain", "ep_type")

    def __init__(self, ep_type: EndpointType | None, caps: Cap, domain: str | None) -> None:
        self.ep_type = ep_type
        self.caps = caps
        self.domain = domain

    def choose(self, infos: Iterable[Info]) -> tuple[list[Info], str]:
        """Those of one provider that fit; and where there are none, what the nearest ones lack."""
        infos = list(infos)
        if self.ep_type is not None:
            infos = [info for info in infos if info.ep_type is self.ep_type]
            if not infos:
                return [], f"no {self.ep_type.name.lower()} endpoints"
        missing = dict.fromkeys(self.caps & ~info.caps for info in infos)
        infos = [info for info in infos if not self.caps & ~info.caps]
        if not infos:
            lacks = (", ".join(str(cap.name).lower() for cap in caps) for caps in missing)
            return [], "; ".join(f"lacks {names}" for names in lacks)
        if self.domain is not None:
            infos = [info for info in infos if info.domain == self.domain]
        return infos, f"no device {self.domain}"


def _left_out(name: str) -> Explanation:
    """A provider that nobody asked: it is not asked either, which may take long."""
    try:
        loaded = providers.load(name)
    except ProviderUnavailable:
        return Explanation(name, None, None, (), LEFT_OUT)
    return Explanation(name, loaded.description, loaded.version, (), LEFT_OUT)


def _explain(name: str, hints: _Hints) -> Explanation:
    try:
        loaded = providers.load(name)
    except ProviderUnavailable as error:
        return Explanation(name, None, None, (), str(error.message))
    infos, reason = _query(loaded, name)
    if name != loaded.name:
        others = _names(infos)
        infos = [info for info in infos if info.provider == name]
        reason = reason if infos or not others else f"not offered here; there is {others}"
    fitting: list[Info] = []
    if infos:
        fitting, reason = hints.choose(infos)
    if not fitting and name != loaded.name and infos:
        instead = _names(hints.choose(_query(loaded, loaded.name)[0])[0])
        reason = f"{reason}; {instead} would do" if instead else reason
    return Explanation(name, loaded.description, loaded.version, tuple(fitting), None if fitting else reason)


def _names(infos: Iterable[Info]) -> str:
    return ", ".join(dict.fromkeys(info.provider for info in infos))


def _query(loaded: providers.LoadedProvider, name: str) -> tuple[list[Info], str]:
    records, text = ffi.new("struct ofp_info[]", providers.INFOS_MAX), Text()
    count = lib.ofp_provider_getinfo_as(
        loaded.handle, name.encode(), records, providers.INFOS_MAX, text.pointer, text.size
    )
    drain_log()
    infos = [from_record(records[index]) for index in range(max(count, 0))]
    if count < 0 and not str(text):
        return infos, str(ffi.string(lib.ofp_strerror(count)).decode())
    return sorted(infos, key=lambda info: info.rank), str(text) or "the provider gives no reason"


def at_node(info: Info, node: str) -> Info:
    """The same, but what is opened from it is at this node of the host and nowhere else.

    Raises
    ------
    Unreachable
        When that is no name or address of this host, or not of this info's device.
    NotSupported
        When the provider cannot be told where to listen.
    """
    record, text = ffi.new("struct ofp_info *"), Text()
    ffi.buffer(record)[:] = info._record
    handle = providers.load(info.provider).handle
    result = lib.ofp_provider_at_node(handle, record, node.encode(), text.pointer, text.size)
    check(result, text=text, operation=f"open at {node}", provider=info.provider)
    return from_record(record[0])


# Room for what a provider says of a device, with long tables in it.
_DETAILS_SIZE = 1 << 16


def details(info: Info) -> dict[str, str]:
    """What else the provider knows of the device behind an info: values by names, in its order."""
    record, text = ffi.new("struct ofp_info *"), Text(_DETAILS_SIZE)
    ffi.buffer(record)[:] = info._record
    handle = providers.load(info.provider).handle
    if lib.ofp_provider_describe(handle, record, text.pointer, text.size) < 0:
        return {}
    return {name: value for name, _, value in (line.partition("\t") for line in str(text).splitlines())}


_TEXT_FIELDS = ("provider", "fabric", "domain", "protocol")
_NUMBER_FIELDS = (
    "protocol_version",
    "max_msg_size",
    "max_rma_size",
    "max_atomic_size",
    "inject_size",
    "tx_size",
    "rx_size",
    "segment_limit",
    "remote_segment_limit",
    "cq_data_size",
    "mr_key_size",
    "max_private_data",
    "rank",
)


def from_record(record: Any) -> Info:
    """Make an Info from a ``struct ofp_info``."""
    texts: dict[str, Any] = {name: ffi.string(getattr(record, name)).decode() for name in _TEXT_FIELDS}
    numbers: dict[str, Any] = {name: int(getattr(record, name)) for name in _NUMBER_FIELDS}
    return Info(
        **texts,
        **numbers,
        ep_type=EndpointType(record.ep_types),
        caps=Cap(record.caps),
        emulated_caps=Cap(record.emulated_caps),
        msg_order=Order(record.msg_order),
        rma_order=Order(record.rma_order),
        atomic_order=Order(record.atomic_order),
        address_format=AddressFormat(record.address_format),
        wait_fd=bool(record.wait_fd),
        offloads_matching=bool(record.offloads_matching),
        peer_proof=PeerProof(record.peer_proof),
        encryption=Encryption(record.encryption),
        _record=bytes(ffi.buffer(ffi.addressof(record))),
    )
