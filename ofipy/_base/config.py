# SPDX-License-Identifier: BSD-3-Clause
"""Settings. Precedence: call argument, environment ``OFIPY_*``, configuration file, default.

The file is TOML, named by ``OFIPY_CONFIG`` or else ``ofipy/config.toml`` in the user's XDG configuration
folder; the working directory is never read unasked. ``provider = "shm"`` sets ``OFIPY_PROVIDER``; the
table ``[shm]`` with ``bounce_size = "32k"`` sets ``OFIPY_SHM_BOUNCE_SIZE``. Parameters are declared in C, by
the core and by each provider, so a value is handed over as soon as its declarer is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ofipy._base.binding import check, ffi, lib, logger
from ofipy._base.errors import ConfigError
from ofipy._base.process_lock import process_lock
from ofipy._base.record import Record
from ofipy._requests import Hold

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Parameter", "apply", "check_environment", "config_path", "origin", "parameters", "value"]

_lock = process_lock("the configuration file", held=True)
_waiting: dict[str, str] | None = None  # read from the file, not declared yet; None: the file was not read
_source: Path | None = None
_in_file: frozenset[str] = frozenset()  # names that the file sets


class Parameter(Record):
    """One declared setting."""

    name: str
    """Of the environment variable, such as ``OFIPY_PROVIDER``."""
    type: str
    """``string``, ``bool``, ``size`` or ``int``."""
    range: str
    """What may be asked for, such as ``1 to 16m`` or ``yes or no``; empty: any text."""
    default: str
    """Value without any setting."""
    help: str
    """One sentence."""
    value: str
    """Value in force now."""
    source: str
    """``default``, ``file`` or ``environment``."""


def config_path() -> Path | None:
    """The configuration file to read, None when there is none.

    Raises
    ------
    ConfigError
        When ``OFIPY_CONFIG`` names a file that does not exist.
    """
    named = os.environ.get("OFIPY_CONFIG")
    if named:
        if not os.path.isfile(named):
            raise ConfigError(
                f"OFIPY_CONFIG names {named}, which is not a file",
                remedy="unset it, or name a file that is there",
            )
        found = named
    else:
        # XDG Base Directory Specification: empty is as good as unset.
        folder = os.environ.get("XDG_CONFIG_HOME", "").strip() or "~/.config"
        found = os.path.join(os.path.expanduser(folder), "ofipy", "config.toml")
        if not os.path.isfile(found):
            return None
    # Only who has one pays for the import.
    from pathlib import Path

    return Path(found)


def flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """Parameter names and texts of a TOML document.

    Raises
    ------
    ConfigError
        For a value that is neither text, number nor truth value.
    """
    result: dict[str, str] = {}
    for key, entry in table.items():
        name = f"{prefix}{key}".upper().replace("-", "_")
        if isinstance(entry, Mapping):
            result |= flatten(entry, f"{name}_")
        elif isinstance(entry, bool):
            result[name] = "true" if entry else "false"
        elif isinstance(entry, str | int):
            result[name] = str(entry)
        else:
            raise ConfigError(f"{name.lower()} = {entry!r}; text, a whole number or true/false is meant")
    return result


def _read() -> dict[str, str]:
    global _source
    _source = config_path()
    if _source is None:
        return {}
    import tomllib

    try:
        return flatten(tomllib.loads(_source.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"cannot read {_source}: {error}", remedy="mend it, or name another one by OFIPY_CONFIG"
        ) from error


def apply(*, owners: Callable[[], Iterable[str]] = tuple, complete: bool = False) -> None:
    """Hand the file's values over to those parameters that are declared by now.

    Parameters
    ----------
    owners : callable
        Returns names of known providers: a value named after one waits until that provider is loaded. Not called
        where every value is declared.
    complete : bool
        Every provider is loaded: nothing waits any longer.

    Raises
    ------
    ConfigError
        When the file cannot be read, or a value does not fit its parameter.
    """
    global _in_file, _waiting
    with Hold(_lock):
        if _waiting is None:
            found = _read()
            _in_file, _waiting = frozenset(found), found
        prefixes: tuple[str, ...] | None = ("\0",) if complete else None
        for name, text in list(_waiting.items()):
            result = lib.ofp_param_set(name.encode(), text.encode())
            if result == 0:
                del _waiting[name]
                continue
            if (known := _declared(name)) is not None:
                raise ConfigError(f"{_source}: {name.lower()} = {text!r}; {known.range} is meant")
            if prefixes is None:
                prefixes = tuple(f"{owner.upper()}_" for owner in owners()) or ("\0",)
            if not name.startswith(prefixes):
                del _waiting[name]
                _warn_unknown(name)


def check_environment() -> None:
    """Refuse what the environment says and cannot mean, of those parameters that are declared by now.

    Raises
    ------
    ConfigError
        That names variable, value and range.
    """
    for info in _infos():
        if info.refused != ffi.NULL:
            name, text, meant = (
                ffi.string(field).decode(errors="replace") for field in (info.name, info.refused, info.range)
            )
            raise ConfigError(f"OFIPY_{name}={text!r} in the environment; {meant} is meant")


def _declared(name: str) -> Parameter | None:
    return next((each for each in parameters() if each.name == f"OFIPY_{name}"), None)


def _warn_unknown(name: str) -> None:
    import difflib

    known = [parameter.name.removeprefix("OFIPY_") for parameter in parameters()]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0].lower()}?" if near else ""
    logger("ofipy.config").warning("%s: unknown setting %s%s", _source, name.lower(), hint)


def value(name: str) -> str | None:
    """Value in force of ``OFIPY_<name>``; None when empty or not declared. Call :func:`apply` before."""
    text = lib.ofp_param_value(name.encode())
    return (ffi.string(text).decode() or None) if text != ffi.NULL else None


def origin(name: str) -> str:
    """Who has set ``OFIPY_<name>``: the environment, a line of the configuration file, or the job."""
    source = next(ffi.string(info.source) for info in _infos() if ffi.string(info.name) == name.encode())
    if source == b"environment":
        return f"OFIPY_{name} in the environment"
    return f"{name.lower()} in {_source}" if name in _in_file else "the job that the process has joined"


def parameters() -> list[Parameter]:
    """Every parameter declared so far."""
    result = []
    for info in _infos():
        text = {
            field: ffi.string(getattr(info, field)).decode(errors="replace")
            for field in ("name", "type", "range", "default_value", "help", "value", "source")
        }
        result.append(
            Parameter(
                name=f"OFIPY_{text['name']}",
                type=text["type"],
                range=text["range"],
                default=text["default_value"],
                help=text["help"],
                value=text["value"],
                source=text["source"],
            )
        )
    return result


def _infos() -> Iterator[Any]:
    """Every parameter as C has it, in one record."""
    info = ffi.new("struct ofp_param_info *")
    for index in range(lib.ofp_param_count()):
        check(lib.ofp_param_get(index, info), operation="parameters")
        yield info
