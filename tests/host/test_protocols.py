# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy info --protocols``, and what settings and measured costs change in ``ep.protocols(peer)``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import ofipy
from tests.host.test_commands import run

TIMEOUT = 60
SIZE = 1 << 20


def rows_of(
    provider: str, direction: str = "sent", memory: str = "any", **environment: str
) -> list[dict[str, Any]]:
    document = json.loads(run("info", "--protocols", "--json", "-p", provider, **environment)[0])
    assert document["schema"] == 1
    (found,) = document["protocols"]
    assert (found["provider"], found["reason"]) == (provider, None)
    return [row for row in found["rows"] if (row["direction"], row["memory"]) == (direction, memory)]


def brief(rows: list[dict[str, Any]]) -> list[tuple[int, int | None, str, str]]:
    longest = max(row["to"] for row in rows)
    return [
        (row["from"], None if row["to"] == longest else row["to"], row["protocol"], row["reason"])
        for row in rows
    ]


@pytest.mark.parametrize(("setting", "bounce"), [("4k", 4096), ("6000", 5952), ("64k", 65536)])
def test_thresholds_are_those_of_the_settings(setting: str, bounce: int) -> None:
    assert brief(rows_of("shm", OFIPY_SHM_BOUNCE_SIZE=setting)) == [
        (0, 96, "eager", "threshold"),
        (97, bounce, "bounce", "threshold"),
        (bounce + 1, None, "announced", "threshold"),
    ]


def test_a_setting_forces_a_copy_method() -> None:
    assert brief(rows_of("shm", "received", "private", OFIPY_SHM_ATTACH="no")) == [
        (1, None, "pipelined", "forced")
    ]
    assert brief(rows_of("shm", "received", "shared", OFIPY_SHM_ATTACH="no")) == [
        (1, None, "mapped", "memory")
    ]


def test_the_table_and_what_does_not_exist() -> None:
    said, _ = run("info", "--protocols", "-p", "shm", COLUMNS="100")
    assert "shm, shm" in said
    for word in ("eager", "bounce", "announced", "16 KiB", "threshold"):
        assert word in said
    run("info", "--protocols", "-p", "nothing", code=3)


def test_credit_is_the_threshold_of_tcp() -> None:
    first, second = rows_of("tcp")
    assert (first["protocol"], first["reason"]) == ("eager", "threshold")
    assert (second["protocol"], second["reason"]) == ("announced", "memory")
    # A sixteenth part, or less, of the receiver's memory for unexpected messages.
    (smaller, _) = rows_of("tcp", OFIPY_UNEXPECTED_SIZE="32m")
    assert 0 < smaller["to"] < first["to"]


def test_costs_are_told_when_they_are_measured() -> None:
    with ofipy.open(provider="shm") as here, ofipy.open(provider="shm") as there:
        peer = here.insert(there.address)
        payload, target = np.ones(SIZE, np.uint8), np.empty(SIZE, np.uint8)
        for _ in range(3):
            receive = there.trecv_into(target)
            here.tsend(payload, peer).wait(timeout=TIMEOUT)
            source = receive.wait(timeout=TIMEOUT).source
        rows = [row for row in there.protocols(source) if row.memory == "private"]
        (measured,) = (row for row in rows if row.from_size <= SIZE <= row.to_size)
        assert measured.cost_usec is not None
        assert measured.cost_usec > 0
        # Another class of sizes has no messages yet.
        (other,) = (row for row in rows if row.from_size <= 16 * SIZE <= row.to_size)
        assert other.cost_usec is None
