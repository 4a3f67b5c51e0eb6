# SPDX-License-Identifier: BSD-3-Clause
"""Rates of several processes: every pattern, over each way that a job has."""

import json
import subprocess
import sys
from typing import Any

import pytest

SCALE = [sys.executable, "-P", "-m", "fabtests", "scale"]


def scale(*arguments: str, code: int = 0) -> str:
    result = subprocess.run(
        [*SCALE, *arguments, "-D", "0.3"], capture_output=True, text=True, timeout=100, check=False
    )
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout if code == 0 else result.stderr


def document(*arguments: str) -> Any:
    printed = scale(*arguments, "--json")
    # The launcher says whose line it is.
    return json.loads("\n".join(line.removeprefix("[0] ") for line in printed.splitlines()))


@pytest.mark.parametrize("provider", ["shm", "tcp", "link"])
@pytest.mark.parametrize(("pattern", "flows"), [("many_to_one", 2), ("all_to_all", 6)])
def test_messages_of_every_process_count(pattern: str, flows: int, provider: str) -> None:
    found = document(pattern, "-n", "3", "-p", provider, "-W", "16")
    assert (found["pattern"], found["provider"], found["processes"]) == (pattern, provider, 3)
    assert len(found["flows"]) == flows
    assert all(count % 16 == 0 for count in found["flows"])
    assert found["count"] == sum(found["flows"])
    assert found["starved"] == found["flows"].count(0) == 0
    assert 1 / flows < found["jain"] <= 1
    assert found["p50_usec"] > 0


def test_messages_that_the_transport_has_no_room_for_at_once() -> None:
    found = document("all_to_all", "-n", "2", "-p", "tcp", "-S", "100000", "-W", "300")
    assert found["starved"] == 0


@pytest.mark.parametrize(
    ("provider", "kind"), [("shm", "rdm"), ("tcp", "rdm"), ("tcp", "msg"), ("link", "rdm")]
)
def test_every_client_of_a_storm_gets_in(provider: str, kind: str) -> None:
    found = document("connection_storm", "-n", "3", "-p", provider, "-e", kind)
    assert (found["unit"], found["ep_type"]) == ("connections", kind)
    assert len(found["flows"]) == 2
    assert found["starved"] == 0


def test_a_table_for_people() -> None:
    printed = scale("many_to_one", "-n", "2", "-p", "shm")
    assert "many_to_one over shm, 8 B, windows of 64" in printed
    assert "messages/s" in printed
    assert "p99.9" in printed


def test_what_a_provider_lacks_is_not_run() -> None:
    assert "endpoint type msg: shm has none" in scale(
        "connection_storm", "-n", "2", "-p", "shm", "-e", "msg", code=61
    )


def test_messages_are_of_endpoints_without_connections() -> None:
    assert "connection_storm" in scale("all_to_all", "-e", "msg", code=2)


def test_connections_have_no_size() -> None:
    assert "-W is for messages" in scale("connection_storm", "-W", "8", code=2)
