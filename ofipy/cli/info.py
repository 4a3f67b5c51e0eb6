# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy info``: what is available here, what is not and why, and every parameter."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import ofipy
from ofipy._base import config
from ofipy._base.encryption import CIPHERS, encrypted_connections
from ofipy._base.flags import Cap, Encryption, PeerProof
from ofipy._base.spelling import unknown_variables
from ofipy._discovery.hooks import every
from ofipy._discovery.info import Explanation, Info, details
from ofipy._objects.open import default_info
from ofipy.cli.filters import keep_fitting
from ofipy.cli.support import CommandError, ExitCode, data_console, print_json
from ofipy.cli.tables import WRAPPED_WIDTH, print_table
from ofipy.host.tree import Tree

__all__ = ["show_hooks", "show_parameters", "show_providers"]

SCHEMA = 1
MARK = "*"


def show_providers(
    *,
    provider: str | None,
    caps: str | None,
    ep_type: str | None,
    filters: Sequence[tuple[str, str]],
    verbose: bool,
    as_json: bool,
) -> None:
    """Print providers.

    Parameters
    ----------
    provider, caps, ep_type : str, optional
        Filters, as :func:`ofipy.getinfo` takes them; several names with commas.
    filters : sequence of (str, str)
        Names and values of :mod:`ofipy.cli.filters`.
    verbose : bool
        Every attribute.
    as_json : bool
        One document in place of a table.

    Raises
    ------
    CommandError
        After printing, when nothing is available.
    """
    wanted = caps.split(",") if caps is not None else None
    found = ofipy.getinfo(provider=provider, caps=wanted, ep_type=ep_type, explain=True)
    names = set(provider.split(",")) if provider is not None else {each.provider for each in found}
    shown = [each for each in found if each.provider in names]
    if filters:
        shown = keep_fitting(shown, filters, Tree())
    if as_json:
        default = default_info()
        print_json(
            {
                "schema": SCHEMA,
                "default": default and {"provider": default.provider, "domain": default.domain},
                "key_set": is_key_set(),
                "encrypted": encrypted_connections(),
                "ciphers": list(CIPHERS) if encrypted_connections() != "none" else [],
                "providers": [describe(each) for each in shown],
            }
        )
    else:
        show_table(data_console(), shown, default_info())
        if verbose:
            show_attributes(data_console(), shown)
    if not any(each.infos for each in shown):
        raise CommandError("no provider is available that fits", code=ExitCode.NO_PROVIDER)


def describe(explanation: Explanation) -> dict[str, Any]:
    """One provider in the document."""
    return {
        "name": explanation.provider,
        "available": bool(explanation.infos),
        "description": explanation.description,
        "version": explanation.version,
        "reason": explanation.reason,
        "infos": [attributes(info) | {"device": details(info)} for info in explanation.infos],
    }


def attributes(info: Info) -> dict[str, Any]:
    """The public attributes of an info; flags as lists of lower-case names."""
    public = [field.name for field in fields(info) if not field.name.startswith("_")]
    return {name: plain(getattr(info, name)) for name in public}


def plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, enum.Flag):
        return [str(flag.name).lower() for flag in value]
    if isinstance(value, enum.Enum):
        return value.name.lower()
    return value


def show_table(console: Console, explanations: Sequence[Explanation], default: Info | None) -> None:
    """A row for each device of a provider, or for a provider's refusal; the default has a mark."""
    table = Table()
    for heading in ("provider", "endpoint", "device", "protocol", "peers prove", "encrypted"):
        table.add_column(heading, no_wrap=True)
    table.add_column("capabilities, or why it is not available", min_width=WRAPPED_WIDTH)
    for each in explanations:
        for infos in by_device(each.infos):
            shown = [attributes(info) for info in infos]
            table.add_row(
                f"{infos[0].provider} {MARK}" if default in infos else infos[0].provider,
                lines(one["ep_type"] for one in shown),
                lines(f"{info.fabric}/{info.domain}" for info in infos),
                lines(f"{info.protocol} {info.protocol_version}" for info in infos),
                lines(describe_proof(info) for info in infos),
                lines(describe_encryption(info) for info in infos),
                " ".join(shown[0]["caps"]),
            )
        if not each.infos:
            table.add_row(
                each.provider, "-", "-", "-", "-", "-", Text(each.reason or "no reason given", style="yellow")
            )
    print_table(console, table)
    if any(info == default for each in explanations for info in each.infos):
        console.print(f"{MARK} what open() takes when nothing is asked for")
    if encrypted_connections() != "none":
        console.print(f"encrypted by TLS 1.3: {' or '.join(CIPHERS)}")


def is_key_set() -> bool:
    """Whether there is a key that peers must prove, of the providers that require one."""
    return bool(config.value("AUTH_KEY_FILE"))


def describe_proof(info: Info) -> str:
    """What peers prove before they are connected."""
    if info.peer_proof is PeerProof.KEY:
        return "the key" if is_key_set() else "a key, if set"
    return "their user" if info.peer_proof is PeerProof.USER else "nothing"


def describe_encryption(info: Info) -> str:
    """Which connections of an info are encrypted by the settings."""
    if info.encryption is Encryption.HOST:
        return "within host"
    return encrypted_connections() if info.encryption is Encryption.TLS else "none"


def by_device(infos: Sequence[Info]) -> list[list[Info]]:
    """Those that differ in their address family, endpoint and protocol alone, together: as people see one interface."""
    groups: dict[tuple[str, str, Cap], list[Info]] = {}
    for info in infos:
        groups.setdefault((info.provider, info.domain.removesuffix("-ipv6"), info.caps), []).append(info)
    return list(groups.values())


def lines(texts: Iterable[str]) -> str:
    """Each of them once."""
    return "\n".join(dict.fromkeys(texts))


def show_attributes(console: Console, explanations: Sequence[Explanation]) -> None:
    """Every attribute of every info, one a line."""
    for each in explanations:
        for info in each.infos:
            console.print(f"\n{info.provider} {each.version}: {each.description}")
            for name, value in attributes(info).items():
                text = " ".join(value) if isinstance(value, list) else str(value)
                console.print(f"    {name:22} {text or '-'}")
            for name, value in details(info).items():
                console.print(f"    {name:22} {value or '-'}", markup=False, highlight=False)


def show_parameters(*, as_json: bool) -> None:
    """Print every parameter: name, range, value in force, where it comes from, default, help."""
    ofipy.getinfo(explain=True)  # a provider declares its parameters when it is loaded
    parameters, unknown = ofipy.parameters(), unknown_variables()
    if as_json:
        described = {
            name: [asdict(each) for each in rows]
            for name, rows in (("parameters", parameters), ("unknown", unknown))
        }
        print_json({"schema": SCHEMA, **described})
        return
    table = Table()
    for heading in ("parameter", "range"):
        table.add_column(heading, no_wrap=True)
    # A value may be a path, or an address: it is folded where it is longer than the rest.
    table.add_column("value", overflow="fold", min_width=WRAPPED_WIDTH)
    for heading in ("from", "default"):
        table.add_column(heading, no_wrap=True)
    table.add_column("help", min_width=WRAPPED_WIDTH)
    for each in parameters:
        table.add_row(each.name, each.range or "text", each.value, each.source, each.default, each.help)
    print_table(data_console(), table)
    for variable in unknown:
        hint = f"; did you mean {variable.near}?" if variable.near else ""
        data_console().print(f"{variable.name} is set, and nothing reads it{hint}")


def show_hooks(*, as_json: bool) -> None:
    """Print every hook with its options: name, range, default, help."""
    hooks = every()
    if as_json:
        described = [
            {"name": hook.name, "options": [asdict(option) for option in hook.options]} for hook in hooks
        ]
        print_json({"schema": SCHEMA, "hooks": described})
        return
    table = Table()
    for heading in ("hook", "option", "range", "default"):
        table.add_column(heading, no_wrap=True)
    table.add_column("help", min_width=WRAPPED_WIDTH)
    for hook in hooks:
        table.add_row(hook.name, "", "", "", hook.description)
        for option in hook.options:
            table.add_row("", option.name, option.range or "text", option.default, option.help)
    print_table(data_console(), table)
