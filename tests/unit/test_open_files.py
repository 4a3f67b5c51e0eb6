# SPDX-License-Identifier: BSD-3-Clause
"""Opening with too few descriptors left: the error names the limit, and what to do."""

import subprocess
import sys

import pytest

import ofipy

# Opens an endpoint while this process may have ever more files, until it succeeds, and says what came of it each time.
PROGRAM = """
import resource, sys
import ofipy
ofipy.getinfo()
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for limit in range(4, 64):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        ofipy.open(provider=sys.argv[1]).close()
    except ofipy.FabricError as error:
        print(limit, type(error).__name__, error)
    else:
        print("opened")
        break
"""


def outcomes(provider: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, provider], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def bridged() -> list[str]:
    return [name for name in sorted({info.provider for info in ofipy.getinfo()}) if name == "ofi:net"]


@pytest.mark.parametrize("provider", ["shm", "tcp", "link", *bridged()])
def test_each_place_that_lacks_a_descriptor_says_so(provider: str) -> None:
    *failures, last = outcomes(provider)
    assert last == "opened"
    for said in failures:
        limit, kind, text = said.split(maxsplit=2)
        assert kind == "NoMemory", said
        assert text.endswith(f"ulimit -n lets this process have {limit} (close some, or raise it)"), said
    # Descriptors of the domain, of its helper and of the endpoint.
    assert len({said.partition(": ulimit")[0].partition(" ")[2] for said in failures}) > 3
