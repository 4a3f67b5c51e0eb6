# SPDX-License-Identifier: BSD-3-Clause
"""The short way to an endpoint, and to a listener."""

import errno as codes
import os
import sys
from collections.abc import Iterable
from typing import Literal, Unpack

from ofipy._base.binding import failure, logger
from ofipy._base.errors import FabricError, ProviderUnavailable
from ofipy._base.flags import Cap, EndpointType, Progress, Threading
from ofipy._discovery.info import LEFT_OUT, Info, at_node, configured_providers, getinfo
from ofipy._discovery.providers import preferred_names
from ofipy._objects.endpoint import Endpoint
from ofipy._objects.fabric import Domain, Fabric
from ofipy._objects.keywords import OpenOptions, refuse_unknown
from ofipy._objects.passive import PassiveEndpoint

__all__ = ["listen", "open"]

_told: set[str] = set()


def open(
    service: int | str | None = None,
    *,
    provider: str | None = None,
    node: str | None = None,
    ep_type: EndpointType | str = "rdm",
    caps: Cap | str | Iterable[Cap | str] = "msg|tagged",
    threading: Threading | Literal["safe", "domain"] = "safe",
    progress: Progress | Literal["manual", "auto"] = "auto",
    hooks: str | Iterable[str] | None = None,
    **options: Unpack[OpenOptions],
) -> Endpoint[Domain]:
    """Open an endpoint with all that it needs: fabric, domain, completion queue, address vector.

    Parameters
    ----------
    service : int or str, optional
        Port at which peers find it, or a name, which stands for a port from 61000 on, the same everywhere.
        Default: any; ``ep.address`` tells.
    provider : str, optional
        Provider by name. Default: ``OFIPY_PROVIDER``, else the best that is available.
    node : str, optional
        Name or address of this host at which the endpoint is, and nowhere else: over a network it listens at exactly
        that address. Default: the provider's first, as ``ep.address`` tells.
    ep_type : EndpointType or str
        Kind of endpoint. One of type ``msg`` has one peer: :meth:`Endpoint.connect` it.
    caps : Cap or str
        Capabilities that it must have.
    threading : Threading or str
        As of :meth:`Fabric.domain`.
    progress : Progress or str
        As of :meth:`Fabric.domain`; here a helper thread is the default, so that peers are served while the
        program computes.
    hooks : str or iterable of str, optional
        As of :class:`Fabric`.
    complete, tx_flags, rx_flags, tx_size, unexpected_size, min_multi_recv, selective_completion, remote_events
        As of :class:`Endpoint`.
    traffic_class : int, optional
        As of :class:`Endpoint`: of the packets that it sends, 0 to 255.

    Returns
    -------
    Endpoint
        Its ``close()`` closes everything.

    Raises
    ------
    ProviderUnavailable
        When no provider fits; the message says why for each.
    Unreachable
        When `node` is not this host, or none of the devices that fit has that address.
    NotSupported
        When the provider cannot be told where to be.
    InvalidArgument, ConfigError
        When there is no such hook, option of it, or value; the message says what there is.
    """
    refuse_unknown(open, options, OpenOptions)
    info = _choose(provider, ep_type, caps, node, "open")
    fabric = Fabric(info, hooks=hooks)
    try:
        domain = fabric.domain(threading=threading, progress=progress)
        endpoint = domain.endpoint(service=service, **options).enable()
    except BaseException:
        fabric.close()
        raise
    endpoint._owned = fabric
    return endpoint


def listen(
    service: int | str | None = None,
    *,
    provider: str | None = None,
    node: str | None = None,
    caps: Cap | str | Iterable[Cap | str] = "msg|tagged",
    threading: Threading | Literal["safe", "domain"] = "safe",
    progress: Progress | Literal["manual", "auto"] = "auto",
    backlog: int | None = None,
    hooks: str | Iterable[str] | None = None,
) -> PassiveEndpoint[Domain]:
    """Listen for connections, with all that it needs: fabric, domain, event queue.

    The other side calls ``ofipy.open(ep_type="msg")`` and :meth:`Endpoint.connect`.

    Parameters
    ----------
    service : int or str, optional
        Port, or name that stands for one, at which others find it. Default: any; ``listener.address`` tells.
    provider, node, caps, threading, progress
        As of :func:`open`.
    backlog : int, optional
        As of :class:`PassiveEndpoint`.
    hooks : str or iterable of str, optional
        As of :class:`Fabric`: those of the endpoints that accept.

    Returns
    -------
    PassiveEndpoint
        Listening. Its ``close()`` closes everything, connections too.

    Raises
    ------
    AddressInUse
        When another one has the service.
    ProviderUnavailable
        When no provider fits; the message says why for each.
    Unreachable, NotSupported
        As of :func:`open`, when it cannot be at `node`.
    """
    info = _choose(provider, EndpointType.MSG, caps, node, "listen")
    fabric = Fabric(info, hooks=hooks)
    try:
        domain = fabric.domain(threading=threading, progress=progress)
        listener = domain.passive_endpoint(service=service, backlog=backlog)
        listener.listen()
    except BaseException:
        fabric.close()
        raise
    listener._owned = fabric
    return listener


def _choose(
    provider: str | None,
    ep_type: EndpointType | str,
    caps: Cap | str | Iterable[Cap | str],
    node: str | None,
    operation: str,
) -> Info:
    """The preferred of what fits, and is at that node."""
    wanted = caps if isinstance(caps, Cap | str) else list(caps)
    infos = _first_that_fit(provider, ep_type, wanted)
    if not infos:
        report = getinfo(provider=provider, ep_type=ep_type, caps=wanted, explain=True)
        short = next(
            (each.reason for each in report if os.strerror(codes.EMFILE) in (each.reason or "")), None
        )
        if short is not None:  # a provider that could not look around may fit all the same
            raise failure(codes.EMFILE, text=short, operation=operation)
        asked = (each for each in report if each.reason and each.reason != LEFT_OUT)
        reasons = "; ".join(f"{each.provider}: {each.reason}" for each in asked)
        raise ProviderUnavailable(
            f"no provider fits ({reasons or 'none is installed'})",
            operation=operation,
            remedy="ask for less, or see what there is: ofipy info",
        )
    chosen = infos[0] if node is None else _first_at(node, infos)
    # Who has not imported logging sees nothing of this level.
    if provider is None and chosen.provider not in _told and "logging" in sys.modules:
        _told.add(chosen.provider)
        logger(f"ofipy.{chosen.provider}").info("provider %s was chosen", chosen.provider)
    return chosen


def _first_that_fit(
    provider: str | None, ep_type: EndpointType | str, caps: Cap | str | list[Cap | str]
) -> list[Info]:
    # One after the other: looking into an installed libfabric takes long, and most programs do not need it.
    for name in configured_providers(provider) or preferred_names():
        infos = getinfo(provider=name, ep_type=ep_type, caps=caps)
        if infos:
            return infos
    return []


def default_info() -> Info | None:
    """What :func:`open` takes when nothing is asked for; None: no provider fits."""
    return next(iter(_first_that_fit(None, "rdm", "msg|tagged")), None)


def _first_at(node: str, infos: list[Info]) -> Info:
    """The preferred of those that can be at this node."""
    failures: list[FabricError] = []
    for info in infos:
        try:
            return at_node(info, node)
        except FabricError as error:
            failures.append(error)
    first = failures[0]
    reasons = "; ".join(dict.fromkeys(str(each.message) for each in failures))
    raise type(first)(reasons, provider=first.provider, operation=first.operation)
