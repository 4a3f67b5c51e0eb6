# SPDX-License-Identifier: BSD-3-Clause
"""Finding hooks, and reading lists of them.

Some are in the core. Others are shared objects behind entry points of the group ``ofipy.hooks``, loaded when a list
first names them.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from ofipy._base import config
from ofipy._base.binding import Text, check, drain_log, ffi, lib, logger
from ofipy._base.errors import ConfigError
from ofipy._base.process_lock import process_lock
from ofipy._base.record import Record
from ofipy._discovery import providers
from ofipy._requests import Hold

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

__all__ = ["Hook", "HookOption", "KnownHook", "checked", "every"]

GROUP = "ofipy.hooks"

_lock = process_lock("hooks", held=True)
_tried: set[str] = set()


class Hook(Record):
    """What an entry point of the group ``ofipy.hooks`` names: where a hook's shared object is.

    Examples
    --------
    >>> hook = Hook(name="record", module="mypackage._record")
    """

    name: str
    """What lists call it, also the entry point's name."""
    module: str
    """Dotted name under which the shared object is installed. It is found by it, never imported."""


class HookOption(Record):
    """An option of a hook."""

    name: str
    default: str
    range: str
    """What may be asked for, such as ``0 to 1``; empty: any text."""
    help: str
    """One sentence."""


class KnownHook(Record):
    """A hook that can be used here."""

    name: str
    description: str
    """One line."""
    options: tuple[HookOption, ...]


def checked(hooks: str | Iterable[str] | None) -> str:
    """The text of a list, empty without hooks; None stands for what ``OFIPY_HOOKS`` says.

    Raises
    ------
    InvalidArgument
        When the program asks for what there is not.
    ConfigError
        When the setting does.
    """
    if hooks is None:
        providers.configure()
        list_of_hooks = config.value("HOOKS") or ""
    else:
        list_of_hooks = hooks if isinstance(hooks, str) else ";".join(hooks)
    if not list_of_hooks:
        return ""
    for each in list_of_hooks.split(";"):
        _load(each.partition(":")[0])
    text = Text()
    result = lib.ofp_hooks_check(list_of_hooks.encode(), text.pointer, text.size)
    if result < 0 and hooks is None:
        raise ConfigError(f"OFIPY_HOOKS={list_of_hooks!r}: {text}")
    check(result, text=text, operation="hooks")
    return list_of_hooks


def every() -> list[KnownHook]:
    """Every hook that can be used here, with its options."""
    for name in _installed():
        _load(name)
    hooks = []
    name, description = ffi.new("const char **"), ffi.new("const char **")
    for index in range(lib.ofp_hook_count()):
        lib.ofp_hook_get(index, name, description)
        hooks.append(
            KnownHook(
                ffi.string(name[0]).decode(), ffi.string(description[0]).decode(), tuple(_options(index))
            )
        )
    return hooks


def _options(index: int) -> Iterable[HookOption]:
    info, option = ffi.new("struct ofp_hook_option_info *"), 0
    while lib.ofp_hook_option(index, option, info) == 0:
        yield HookOption(
            *(ffi.string(field).decode() for field in (info.name, info.default_value, info.range, info.help))
        )
        option += 1


@cache
def _installed() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def _load(name: str) -> None:
    """Load a hook that is not in the core; whoever names it learns from the core when that did not work."""
    entry = _installed().get(name)
    with Hold(_lock):
        if entry is None or name in _tried:
            return
        try:
            origin, text = providers.shared_object(entry.load().module), Text()
            check(
                lib.ofp_hook_load(origin.encode(), text.pointer, text.size),
                text=text,
                operation="load a hook",
            )
        except Exception as error:
            # Whatever another package does wrong concerns this hook only.
            logger("ofipy.hooks").warning("hook %s cannot be loaded: %s", name, error)
        _tried.add(name)  # behind the call: a child that is forked within it tries, too
    drain_log()
