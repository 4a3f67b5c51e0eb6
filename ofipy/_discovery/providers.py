# SPDX-License-Identifier: BSD-3-Clause
"""Finding and loading providers.

A provider is a shared object behind an entry point of the group ``ofipy.providers``. Those of other packages are
looked for when somebody wants them; an object is loaded when its provider is first asked for. One that does not load
is "unavailable, because …"; it never breaks anything else. ``link`` is no object of its own: it is built in, and made
of other providers, which are loaded before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from ofipy._base import config
from ofipy._base.binding import Text, drain_log, ffi, lib, logger, provider_handles
from ofipy._base.errors import ProviderUnavailable
from ofipy._base.process_lock import process_lock
from ofipy._base.record import Record
from ofipy._requests import Hold

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "INFOS_MAX",
    "PROVIDER_ABI",
    "LoadedProvider",
    "Provider",
    "any_info",
    "configure",
    "entry_of",
    "is_known",
    "known",
    "load",
    "not_loaded",
    "ordered_names",
    "preferred_names",
    "shared_object",
]

GROUP = "ofipy.providers"

# Which provider is tried first when nobody chose one. All others follow, by name.
DEFAULT_ORDER = ("link", "verbs", "shm", "tcp")

LINK = "link"
# Those of this package, which need not be looked for: reading the entry points of everything that is installed takes as
# long as all else that a program does to open its first endpoint.
_OWN = ("ofi", "shm", "tcp", "verbs")
# What `link` is made of as far as it is there, when nobody chose by `link:shm+tcp`.
LINK_PARTS = ("shm", "verbs", "tcp")

# Infos that one provider may have.
INFOS_MAX = 64

_lock = process_lock("providers", held=True)
_loaded: dict[str, LoadedProvider | ProviderUnavailable] = {}


PROVIDER_ABI: tuple[int, int] = lib.OFP_PROVIDER_ABI, lib.OFP_PROVIDER_ABI_MINOR
"""Version of the interface to providers in C: a provider loads if it was built for the same major number."""


class Provider(Record):
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


class LoadedProvider(Record):
    """A provider whose shared object is loaded."""

    name: str
    description: str
    """One line."""
    version: str
    handle: Any
    """The core's pointer."""


class _OwnEntry:
    """What the entry point of one of this package's providers says."""

    __slots__ = ("name", "value")

    def __init__(self, name: str) -> None:
        self.name = name
        self.value = f"ofipy.providers.{name}:provider"

    def load(self) -> Provider:
        provider: Provider = _import_module(f"ofipy.providers.{self.name}").provider
        return provider


_own: dict[str, _OwnEntry | EntryPoint | None] = {LINK: None, **{name: _OwnEntry(name) for name in _OWN}}


@cache
def known() -> Mapping[str, _OwnEntry | EntryPoint | None]:
    """Installed providers by name; None: it is no object of its own."""
    from importlib.metadata import entry_points

    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {**_own, **{entry.name: entry for entry in entries if entry.name not in _own}}


@cache
def configure() -> None:
    """Read the configuration file; what belongs to a provider waits until that is loaded."""
    config.apply(owners=not_loaded)


def not_loaded() -> list[str]:
    """Names of the installed providers that are not loaded yet."""
    return [name for name in known() if name not in _loaded]


def _entry(name: str) -> _OwnEntry | EntryPoint | None:
    """What is known by a name; KeyError when nothing is."""
    return _own[name] if name in _own else known()[name]


def is_known(name: str) -> bool:
    """Whether there is a provider of this name; those of this package are not looked for."""
    return entry_of(name) in _own or entry_of(name) in known()


def ordered_names() -> list[str]:
    """Names of the installed providers, the preferred first."""
    return list(preferred_names())


def preferred_names() -> Iterator[str]:
    """The same one by one: those of other packages are looked for only when they are next."""
    first = [name for name in DEFAULT_ORDER if name in _own]
    yield from first
    yield from (name for name in sorted(known()) if name not in first)


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
    with Hold(_lock):
        if name == LINK:
            _load_parts(asked)
        result = _loaded.get(name)
        if result is None:
            if not is_known(name):
                raise _unknown(asked)
            try:
                entry = _entry(name)
                result = _load(entry) if entry is not None else _load_link()
            except ProviderUnavailable as error:
                logger(f"ofipy.{name}").warning("provider %s cannot be loaded: %s", name, error.message)
                result = error
            _loaded[name] = result
            configure()
            config.apply(owners=not_loaded)
    if isinstance(result, ProviderUnavailable):
        raise ProviderUnavailable(result.message, provider=name, remedy=result.remedy)
    return result


@cache
def any_info(name: str) -> Any:
    """One ``struct ofp_info *`` of a provider, NULL when it has none: tells it whose addresses are meant."""
    records, text = ffi.new("struct ofp_info[]", INFOS_MAX), Text()
    handle = load(name).handle
    count = lib.ofp_provider_getinfo_as(handle, name.encode(), records, INFOS_MAX, text.pointer, text.size)
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


def _load_parts(name: str) -> None:
    """Load what an endpoint of ``link`` or ``link:shm+tcp`` is made of."""
    chosen = name.partition(":")[2]
    if chosen:
        for part in chosen.split("+"):
            load(part)
        return
    for part in LINK_PARTS:
        with suppress(ProviderUnavailable):
            load(part)


def _load_link() -> LoadedProvider:
    handle, text = ffi.new("struct ofp_provider **"), Text()
    if lib.ofp_provider_link(handle, text.pointer, text.size) < 0:
        raise ProviderUnavailable(str(text))
    provider_handles[LINK] = handle[0]
    return _describe(LINK, handle[0])


def _load(entry: _OwnEntry | EntryPoint) -> LoadedProvider:
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


def _import_module(name: str) -> Any:
    # importlib.import_module does the same, but nothing else in the first `open` needs importlib.
    __import__(name)
    return sys.modules[name]


def shared_object(module: str) -> str:
    """Path of an extension by its dotted name, which is not imported."""
    # importlib.util asks the same finders, but is itself a module that nothing else in the first `open` needs.
    package = module.rpartition(".")[0]
    path = _import_module(package).__path__ if package else None
    for finder in sys.meta_path:
        spec = finder.find_spec(module, path)
        if spec is not None and spec.origin is not None:
            return spec.origin
    raise ModuleNotFoundError(f"{module} is not built")


def _describe(name: str, handle: Any) -> LoadedProvider:
    version = lib.ofp_provider_version(handle)
    return LoadedProvider(
        name=name,
        description=ffi.string(lib.ofp_provider_description(handle)).decode(),
        version=f"{version >> 16}.{version & 0xFFFF}",
        handle=handle,
    )
