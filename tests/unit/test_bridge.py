# SPDX-License-Identifier: BSD-3-Clause
"""The bridge to libfabric as far as it shows without a libfabric."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ofipy
from ofipy._discovery.address import scheme_of

NOWHERE = "/nonexistent/libfabric.so.1"


def run(code: str, **environment: str) -> str:
    """Output of a fresh process: a libfabric that was loaded once stays."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import ofipy\n{code}"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_says_which_library_cannot_be_loaded() -> None:
    code = "print(*(each.reason for each in ofipy.getinfo(provider='ofi', explain=True)), sep='\\n')"
    output = run(code, OFIPY_LIBFABRIC=NOWHERE)
    assert "OFIPY_LIBFABRIC cannot be loaded" in output
    assert NOWHERE in output


def test_refuses_a_library_that_is_another() -> None:
    # Other providers may be installed besides, and are listed too.
    code = "print(*(each.reason for each in ofipy.getinfo(provider='ofi', explain=True)), sep='\\n')"
    libc = next(
        line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libc" in line
    )
    assert "is not libfabric" in run(code, OFIPY_LIBFABRIC=libc)


def test_one_of_its_providers_without_a_library() -> None:
    code = """
try:
    ofipy.open(provider="ofi:tcp")
except ofipy.ProviderUnavailable as error:
    print(error)
"""
    assert "ofi:tcp: OFIPY_LIBFABRIC cannot be loaded" in run(code, OFIPY_LIBFABRIC=NOWHERE)


def test_others_are_not_disturbed() -> None:
    code = "print(*sorted({info.provider for info in ofipy.getinfo()}))"
    assert "shm" in run(code, OFIPY_LIBFABRIC=NOWHERE)


def test_opening_does_not_look_for_libfabric() -> None:
    code = """
ofipy.open().close()
print("libfabric" in open("/proc/self/maps").read())
"""
    assert run(code) == "False\n"


def test_names_of_its_providers() -> None:
    with pytest.raises(ofipy.ProviderUnavailable, match="no provider 'of:tcp'"):
        ofipy.getinfo(provider="of:tcp")
    (report,) = (
        each for each in ofipy.getinfo(provider="ofi:no such", explain=True) if "ofi" in each.provider
    )
    assert report.provider == "ofi:no such"
    assert not report.infos
    assert report.reason


@pytest.mark.parametrize(
    ("provider", "scheme"), [("shm", "shm"), ("ofi:tcp", "ofi+tcp"), ("ofi:tcp;ofi_rxm", "ofi+tcp+ofi_rxm")]
)
def test_scheme_of_addresses(provider: str, scheme: str) -> None:
    assert scheme_of(provider) == scheme
    assert str(ofipy.Address(((provider, b"\x01\x02"),))).startswith(f"{scheme}://")
