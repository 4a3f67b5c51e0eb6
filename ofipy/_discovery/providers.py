# SPDX-License-Identifier: BSD-3-Clause
"""Finding and loading providers.

A provider is a shared object behind an entry point of the group ``ofipy.providers``, those of this package
too. Entry points are read at first use, an object is loaded when its provider is first asked for. One that
does not load is "unavailable, because …"; it never breaks anything else.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ofipy._base import config
from ofipy._base.binding import Text, drain_log, ffi, lib, provider_handles
from ofipy._base.errors import ProviderUnavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "INFOS_MAX",
    "LoadedProvider",
    "Provider",
    "any_info",
    "entry_of",
    "known",
    "load",
    "ordered_names",
    "shared_object",
]

GROUP = "ofipy.providers"

# Which provider is tried first when nobody chose one. All others follow, by name.
DEFAULT_ORDER = ("link", "verbs", "shm", "tcp")

# Infos that one provider may have.
INFOS_MAX = 64

_lock = threading.RLock()
_loaded: "dict[str, LoadedProvider | ProviderUnavailable]" = {}


@dataclass(frozen=True, slots=True)
class Provider:
    """What an entry point of the group ``ofipy.providers`` names: where a provider's shared object is.

    Examples
    --------
    >>> provider = Provider(name="shm", module="ofipy.providers.shm._shm")
    """

    name: str
    """Short name, such as ``shm``."""
    module: str
    """Dotted name under which the shared object is installed. It is found by it, never imported."""
    find: Callable[[], Mapping[str, str]] | None = None
    """What only Python can find out: values of the provider's own parameters, by their names without
    ``OFIPY_``; asked for once, when the shared object is loaded."""


@dataclass(frozen=True, slots=True)
class LoadedProvider:
    """A provider whose shared object is loaded."""

    name: str
    description: str
    """One line."""
    version: str
    handle: Any
    """The core's pointer."""


@cache
def known() -> "Mapping[str, EntryPoint]":
    """Installed providers by name."""
    from importlib.metadata import entry_points

    found = {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}
    config.apply(owners=found)
    return found


def ordered_names() -> list[str]:
    """Names of the installed providers, the preferred first."""
    names = list(known())
    first = [name for name in DEFAULT_ORDER if name in names]
    return first + [name for name in names if name not in first]


def entry_of(name: str) -> str:
    """Name of the entry point behind a provider: one shared object may bring several, as ``ofi:tcp``."""
    return name.partition(":")[0]


def load(name: str) -> LoadedProvider:
    """Load a provider; a second time the same one is returned.

    Raises
    ------
    ProviderUnavailable
        When there is none of this name, or its shared object cannot be loaded.
    """
    asked, name = name, entry_of(name)
    with _lock:
        result = _loaded.get(name)
        if result is None:
            if name not in known():
                raise _unknown(asked)
            try:
                result = _load(known()[name])
            except ProviderUnavailable as error:
                logging.getLogger(f"ofipy.{name}").warning(
                    "provider %s cannot be loaded: %s", name, error.message
                )
                result = error
            _loaded[name] = result
            config.apply(owners=[each for each in known() if each not in _loaded])
    if isinstance(result, ProviderUnavailable):
        raise ProviderUnavailable(result.message, provider=name, remedy=result.remedy)
    return result


@cache
def any_info(name: str) -> Any:
    """One ``struct ofp_info *`` of a provider, NULL when it has none: tells it whose addresses are meant."""
    records, text = ffi.new("struct ofp_info[]", INFOS_MAX), Text()
    count = lib.ofp_provider_getinfo(load(name).handle, records, INFOS_MAX, text.pointer, text.size)
    for index in range(count):
        if name in (ffi.string(records[index].provider).decode(), entry_of(name)):
            return ffi.new("struct ofp_info *", records[index])
    return ffi.NULL


def _unknown(name: str) -> ProviderUnavailable:
    import difflib

    names = ordered_names()
    near = difflib.get_close_matches(name, names, n=1)
    remedy = f"did you mean {near[0]}?" if near else None
    listing = f"known are {', '.join(names)}" if names else "none is installed"
    return ProviderUnavailable(f"there is no provider {name!r}; {listing}", remedy=remedy)


def _load(entry: "EntryPoint") -> LoadedProvider:
    try:
        provider = entry.load()
        origin = shared_object(provider.module)
    except Exception as error:
        # Whatever another package does wrong concerns this provider only.
        raise ProviderUnavailable(f"its entry point {entry.value} is broken: {error!r}") from error
    handle, text = ffi.new("struct ofp_provider **"), Text()
    if lib.ofp_provider_load(str(origin).encode(), handle, text.pointer, text.size) < 0:
        raise ProviderUnavailable(str(text) or f"cannot load {origin}")
    provider_handles[entry.name] = handle[0]
    for parameter, value in (provider.find() if provider.find else {}).items():
        lib.ofp_param_set(parameter.encode(), value.encode())
    drain_log()
    return _describe(entry.name, handle[0])


def shared_object(module: str) -> str:
    """Path of an extension by its dotted name, which is not imported."""
    import importlib.util

    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} is not built")
    return spec.origin


def _describe(name: str, handle: Any) -> LoadedProvider:
    version = lib.ofp_provider_version(handle)
    return LoadedProvider(
        name=name,
        description=ffi.string(lib.ofp_provider_description(handle)).decode(),
        version=f"{version >> 16}.{version & 0xFFFF}",
        handle=handle,
    )
