# SPDX-License-Identifier: BSD-3-Clause
"""Questions and answers of ``ofipy doctor``: beside the messages of a ping, JSON objects behind a byte `D`.

A question has ``do``, an answer what was asked for, or ``error`` with the reason. What the other side says is checked
here, once, and becomes findings and numbers.
"""

import json
import math
from typing import Any

import ofipy
from ofipy.doctor.finding import Finding, Rule, State
from ofipy.doctor.rules import RULES
from ofipy.ping.wire import WireError

__all__ = [
    "ARCHIVE",
    "ASK",
    "SERVICE",
    "TAG_STREAM",
    "pack",
    "parse",
    "read_findings",
    "read_number",
    "read_numbers",
    "read_region",
    "read_text",
]

ASK = b"D"
ARCHIVE = b"A"
"""Before the answer to `machine`, which is a compressed tar archive and no object."""
SERVICE = "doctor"
"""What a hello says of a server that answers questions."""
TAG_STREAM = 3
_LONGEST = 2000
_MOST = 4096  # findings, numbers in a list


def pack(said: dict[str, Any]) -> bytes:
    """A question or an answer."""
    return ASK + json.dumps(said).encode()


def parse(data: bytes) -> dict[str, Any]:
    """The object of a question or an answer.

    Raises
    ------
    WireError
        When it is none.
    """
    try:
        said = json.loads(data[1:].decode()) if data[:1] == ASK else None
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise WireError("the other side sent what is no question and no answer of ofipy doctor")
    return said


def read_text(said: dict[str, Any], name: str) -> str:
    """A member that is a text, made harmless for terminals; empty where there is none."""
    value = said.get(name)
    return make_harmless(value) if isinstance(value, str) else ""


def make_harmless(text: str) -> str:
    """A text without what a terminal would obey, and not too long."""
    return "".join(each if each.isprintable() else "?" for each in text[:_LONGEST])


def read_number(said: dict[str, Any], name: str) -> float | None:
    """A member that is a number, None where there is none."""
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def read_numbers(said: dict[str, Any], name: str) -> list[int]:
    """A member that is a list of whole numbers."""
    value = said.get(name)
    return [each for each in value[:_MOST] if type(each) is int] if isinstance(value, list) else []


def read_region(said: dict[str, Any]) -> ofipy.RemoteRegion:
    """The memory that the other side lends.

    Raises
    ------
    WireError
        When it lends none.
    """
    try:
        return ofipy.RemoteRegion.from_bytes(bytes.fromhex(str(said.get("region"))))
    except (ValueError, ofipy.FabricError) as error:
        raise WireError(f"the other side lends no memory: {error}") from error


def read_findings(said: dict[str, Any], place: str) -> list[Finding]:
    """What the other side has found, with its name before each place.

    A finding of a rule that this release does not know is shown with its text.
    """
    value = said.get("findings")
    found = []
    for each in value[:_MOST] if isinstance(value, list) else []:
        state = read_text(each, "state") if isinstance(each, dict) else ""
        if state not in tuple(State):
            continue
        rule = RULES.get(read_text(each, "id")) or Rule(
            read_text(each, "id"), read_text(each, "name"), read_text(each, "step"), ""
        )
        sources = each.get("sources")
        found.append(
            Finding(
                rule,
                State(state),
                read_text(each, "finding"),
                f"{place} {read_text(each, 'place')}".strip(),
                read_number(each, "measured"),
                read_number(each, "threshold"),
                tuple(make_harmless(str(source)) for source in sources[:_MOST])
                if isinstance(sources, list)
                else (),
                read_text(each, "remedy"),
            )
        )
    return found
