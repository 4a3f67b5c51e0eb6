# SPDX-License-Identifier: BSD-3-Clause
"""What is said where there is a device, and something keeps this process from it."""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ofipy

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not Path("/sys/class/infiniband/rxe0").exists(), reason="needs tests/verbs/soft-roce"),
]

REASON = """
import json, ofipy
print(json.dumps([each.reason for each in ofipy.getinfo(provider="verbs", explain=True) if each.provider == "verbs"]))
"""


def reason(*, memlock: str = "unlimited", **variables: str) -> str | None:
    """What a process says that has none of root's powers but the name."""
    script = f'ulimit -l {memlock} && exec setpriv --bounding-set -all --inh-caps -all "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-P", "-c", REASON],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (said,) = json.loads(done.stdout)
    return said if said is None else str(said)


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Nobody may open a file."""
    mode = os.stat(path).st_mode
    os.chmod(path, 0)
    try:
        yield
    finally:
        os.chmod(path, mode)


def test_nothing_is_in_the_way() -> None:
    assert reason() is None


@pytest.mark.parametrize("name", ["uverbs0", "rdma_cm"])
def test_no_permission(name: str) -> None:
    with locked(f"/dev/infiniband/{name}"):
        said = reason()
    assert said is not None
    assert f"no permission on /dev/infiniband/{name}" in said


def test_too_little_locked_memory() -> None:
    said = reason(memlock="64")
    assert said is not None
    assert "RLIMIT_MEMLOCK is 64 KiB: raise it" in said


@contextmanager
def link_down() -> Iterator[None]:
    subprocess.run(["ip", "link", "set", "roce0", "down"], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "set", "roce0", "up"], check=True)


def test_no_port_is_up() -> None:
    with link_down():
        said = reason()
    assert said is not None
    assert "no port of rxe0 is up" in said


def test_a_port_that_goes_down_is_told(caplog: pytest.LogCaptureFixture) -> None:
    info = ofipy.getinfo(provider="verbs")[0]
    with caplog.at_level(logging.INFO, logger="ofipy"), ofipy.Fabric(info) as fabric:
        domain = fabric.domain(progress="auto")
        endpoint = domain.endpoint().enable()
        with link_down():
            deadline = time.monotonic() + 20
            while "rxe0 port 1 is down: " not in caplog.text:
                assert time.monotonic() < deadline, caplog.text
                domain.progress()
                ofipy.getinfo(provider="verbs")  # which passes on what the library has logged
        endpoint.close()


@pytest.mark.parametrize(
    ("name", "value"), [("DEVICE", "mlx5_0"), ("PORT", "2"), ("GID_INDEX", "0"), ("GID_INDEX", "900")]
)
def test_a_choice_that_fits_none(name: str, value: str) -> None:
    said = reason(**{f"OFIPY_VERBS_{name}": value})
    assert said is not None
    assert "rxe0 port 1 is up" in said
    assert f"OFIPY_VERBS_{name}={value}" in said


def test_a_choice_that_fits() -> None:
    assert reason(OFIPY_VERBS_DEVICE="rxe0", OFIPY_VERBS_PORT="1", OFIPY_VERBS_GID_INDEX="1") is None
