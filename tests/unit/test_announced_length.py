# SPDX-License-Identifier: BSD-3-Clause
"""A message longer than there is memory for: it is dropped by name, and the one behind it is reached."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import ofipy

LENGTH = 1 << 28
with ofipy.open() as ep:
    me = ep.insert(ep.address)
    long = ep.tsend(bytes(LENGTH), me, tag=1)
    short = ep.tsend(b"behind it", me, tag=1)
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + LENGTH // 4, resource.RLIM_INFINITY))
    try:
        ep.trecv(tag=1).wait(timeout=30)
    except ofipy.NoMemory as error:
        print(error.length == LENGTH, error.peer == str(ep.address), error.operation, "was dropped" in str(error))
    print(ep.trecv(tag=1).wait(timeout=30).data.decode())
    short.wait(timeout=30)
"""


@pytest.mark.parametrize("provider", ["shm", "tcp"])
def test_it_is_dropped_and_the_next_one_reached(provider: str) -> None:
    environment = os.environ | {"OFIPY_PROVIDER": provider, "OFIPY_TCP_INTERFACE": "lo"}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (ended.stdout, ended.returncode) == ("True True trecv True\nbehind it\n", 0), ended.stderr
