# SPDX-License-Identifier: BSD-3-Clause
"""The table of the hook `profile` at the end of a process; tests/conformance/test_profile.py has what it counts."""

import os
import subprocess
import sys

TALK = """
import os
import ofipy

def talk(times):
    with ofipy.open(provider="shm", service="talker") as ep:
        for _ in range(times):
            ep.tsend(bytes(100), ep.insert(ep.address), tag=1).wait(timeout=20)
            ep.trecv(tag=1).wait(timeout=20)
"""


def table_of(program: str, hooks: str = "profile") -> list[list[str]]:
    """Words of the lines on standard error."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", TALK + program],
        env=os.environ | {"OFIPY_HOOKS": hooks},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [line.split() for line in ran.stderr.splitlines()]


def test_endpoints_of_a_process_are_summed() -> None:
    title, heading, *rows = table_of("talk(3)\ntalk(4)")
    assert title[:4] == ["ofipy:", "hook", "profile:", "process"]
    assert heading == ["operation", "count", "errors", "bytes", "size", "time", "99", "%", "peer"]
    assert [row[:5] for row in rows] == [
        ["tsend", "7", "0", "700", "128"],
        ["trecv", "7", "0", "700", "128"],
    ]
    assert {row[-1].partition("://")[0] for row in rows} == {"shm"}


def test_nothing_is_said_of_nothing() -> None:
    assert table_of("talk(0)") == []
    assert table_of("talk(1)", "profile:table=no") == []
    assert table_of("talk(1)", "debug") == []


def test_a_forked_process_tells_of_its_own() -> None:
    lines = table_of("""
talk(2)
if os.fork() == 0:
    talk(1)
else:
    os.wait()
""")
    counts = [line[1] for line in lines if line[0] == "tsend"]
    assert counts == ["1", "2"]  # the child ends first
    lines = table_of("talk(2)\nos.wait() if os.fork() else None")
    assert [line[1] for line in lines if line[0] == "tsend"] == ["2"]
