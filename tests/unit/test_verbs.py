# SPDX-License-Identifier: BSD-3-Clause
"""The provider verbs where there is no device: why it is not available, and what it can be told."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy
from ofipy._discovery import providers

DEVICES = Path("/sys/class/infiniband")
without_device = pytest.mark.skipif(
    DEVICES.is_dir() and any(DEVICES.iterdir()), reason="this machine has an RDMA device"
)

REASON = """
import json, ofipy
print(json.dumps([each.reason for each in ofipy.getinfo(provider="verbs", explain=True) if each.provider == "verbs"]))
"""


def reason_in_a_process(**variables: str) -> str:
    """What another process says about the provider."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", REASON],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (reason,) = json.loads(done.stdout)
    return str(reason)


def test_it_is_known_everywhere() -> None:
    assert "verbs" in providers.known()
    (report,) = (each for each in ofipy.getinfo(provider="verbs", explain=True) if each.provider == "verbs")
    assert report.infos or report.reason


def test_without_the_libraries(tmp_path: Path) -> None:
    # The loader takes a file of that name in a folder of its path before any other, and this one is none.
    (tmp_path / "libibverbs.so.1").write_bytes(b"")
    reason = reason_in_a_process(LD_LIBRARY_PATH=str(tmp_path))
    assert "libibverbs.so.1 is not found" in reason
    assert "install libibverbs1, librdmacm1 and ibverbs-providers" in reason


def test_an_old_library_is_named(tmp_path: Path) -> None:
    source, library = tmp_path / "empty.c", tmp_path / "libibverbs.so.1"
    source.write_text("int nothing;\n")
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            "-shared",
            "-fPIC",
            "-Wl,-soname,libibverbs.so.1",
            source,
            "-o",
            library,
        ],
        check=True,
        timeout=60,
    )
    assert "libibverbs.so.1 has no ibv_" in reason_in_a_process(LD_LIBRARY_PATH=str(tmp_path))


@without_device
def test_without_a_device() -> None:
    reason = reason_in_a_process()
    if "is not found" in reason:
        pytest.skip("rdma-core is not installed")
    assert "no RDMA device" in reason
    assert "rdma link add rxe0 type rxe" in reason


@without_device
def test_the_libraries_are_loaded_for_who_asks_why() -> None:
    """Opening an endpoint of link does not, which takes a quarter of the time."""
    script = """
import ofipy
maps = lambda: open("/proc/self/maps").read()
with ofipy.open(provider="link"):
    assert "_verbs." in maps()
    assert "libibverbs" not in maps() and "librdmacm" not in maps()
(report,) = (each for each in ofipy.getinfo(provider="verbs", explain=True) if each.provider == "verbs")
assert "libibverbs" in maps() or "is not found" in report.reason, report.reason
"""
    subprocess.run([sys.executable, "-P", "-c", script], timeout=60, check=True)


def test_parameters() -> None:
    ofipy.getinfo(explain=True)
    found = {each.name: each for each in ofipy.parameters() if each.name.startswith("OFIPY_VERBS_")}
    assert {name.removeprefix("OFIPY_VERBS_") for name in found} == {
        "DEVICE",
        "PORT",
        "GID_INDEX",
        "PKEY_INDEX",
        "TRAFFIC_CLASS",
        "SERVICE_LEVEL",
        "PATH_MTU",
        "ACK_TIMEOUT",
        "MIN_RNR_TIMER",
        "RETRY_COUNT",
        "TX_DEPTH",
        "RX_DEPTH",
        "BOUNCE_SIZE",
        "CACHE_COUNT",
        "CACHE_SIZE",
        "RECEIVE_MEMORY",
        "PACKET_SIZE",
        "PACKET_BUFFERS",
        "KEEPALIVE",
    }


def test_nothing_is_linked() -> None:
    """The module asks the loader for neither library, so that wheels run where they are missing."""
    module = providers.shared_object("ofipy.providers.verbs._verbs")
    needed = subprocess.run(["readelf", "-d", module], capture_output=True, text=True, check=True, timeout=60)
    assert "ibverbs" not in needed.stdout
    assert "rdmacm" not in needed.stdout
