# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy trace``: what the hook ``trace`` has written."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ofipy.cli.support import CommandError, status_console

__all__ = ["merge_files"]

Event = dict[str, Any]

ARROW_ENDS = {"s", "f"}


def merge_files(files: Sequence[Path], output: Path) -> None:
    """Write one document with the events of several.

    Parameters
    ----------
    files : sequence of Path
        Written by the hook ``trace``, or by this.
    output : Path
        May be one of them.

    Raises
    ------
    CommandError
        When one of them is not such a file, or the output cannot be written.
    """
    documents = [read(file) for file in files]
    boots = sorted({document["otherData"]["boot"] for document in documents})
    if len(boots) > 1:
        hosts = ", ".join(sorted({document["otherData"]["host"] for document in documents}))
        status_console().print(
            f"Warning: the files are of {len(boots)} hosts or boots ({hosts}), whose clocks have nothing in common: "
            "compare times within one of them only",
            soft_wrap=True,
        )
    events = paired(merged(document["traceEvents"] for document in documents))
    about = documents[0]["otherData"] | {"boot": " ".join(boots)}
    text = json.dumps({"displayTimeUnit": "ns", "otherData": about, "traceEvents": events})
    try:
        output.write_text(text + "\n")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from None
    arrows = sum(event["ph"] == "s" for event in events)
    processes = len({event["pid"] for event in events})
    status_console().print(
        f"{output}: {processes} processes, {len(events)} events, {arrows} arrows", soft_wrap=True
    )


def read(file: Path) -> dict[str, Any]:
    """One document of the hook."""
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise CommandError(f"{file} is no whole JSON document: {error}") from None
    try:
        well_formed = {"host", "boot"} <= document["otherData"].keys() and all(
            {"ph", "pid", "tid"} <= event.keys() for event in document["traceEvents"]
        )
    except (TypeError, KeyError, AttributeError):
        well_formed = False
    if not well_formed:
        raise CommandError(f"{file} was not written by the hook trace")
    return dict(document)


def merged(traces: Iterable[list[Event]]) -> list[Event]:
    """The events of all, in the order of time. A process whose id another one has gets a new one."""
    taken: set[int] = set()
    result: list[Event] = []
    for events in traces:
        own = {event["pid"] for event in events}
        free = (number for number in itertools.count(max(taken | own, default=0) + 1))
        renamed = {pid: next(free) if pid in taken else pid for pid in sorted(own)}
        taken |= set(renamed.values())
        result += [event | {"pid": renamed[event["pid"]]} for event in events]
    return sorted(result, key=lambda event: event.get("ts", 0))


def paired(events: list[Event]) -> list[Event]:
    """Without the arrows of which one end was not traced."""
    ends: dict[str, set[str]] = defaultdict(set)
    for event in events:
        if event["ph"] in ARROW_ENDS:
            ends[event["id"]].add(event["ph"])
    return [event for event in events if event["ph"] not in ARROW_ENDS or ends[event["id"]] == ARROW_ENDS]
