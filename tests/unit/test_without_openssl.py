# SPDX-License-Identifier: BSD-3-Clause
"""Without OpenSSL this host is served, and what needs encryption fails, with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ofipy.cli.key import new_key
from tests.certificates import Authority, is_openssl_there

pytestmark = pytest.mark.skipif(not is_openssl_there(), reason="the command openssl is not installed")

NEIGHBOUR = """
with ofipy.open(provider="link") as ep, ofipy.open(provider="link", progress="auto") as other:
    peer = ep.insert(bytes(other.address))
    ep.tsend(b"x", peer, tag=1).wait(timeout=20)
    assert ep.way(peer) == "shm"
"""
OTHER_HOST = """
os.environ["OFIPY_HOST_ID"] = "here"
ep = ofipy.open(provider="link")
os.environ["OFIPY_HOST_ID"] = "there"
other = ofipy.open(provider="link", progress="auto")
try:
    ep.tsend(b"x", ep.insert(bytes(other.address)), tag=1).wait(timeout=20)
except ofipy.ProviderUnavailable as error:
    print(error)
"""
BY_NAME = """
try:
    ofipy.open(provider="tcp")
except ofipy.ProviderUnavailable as error:
    print(error)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A library that cannot be loaded, in front of the real one; a key and a certificate."""
    (tmp_path / "libssl.so.3").write_bytes(b"")
    new_key(tmp_path / "key")
    certificate = Authority(tmp_path / "authority").sign("peer")
    return (
        os.environ
        | certificate.environment()
        | {"LD_LIBRARY_PATH": str(tmp_path), "OFIPY_INTERFACE": "lo"}
        | {"OFIPY_AUTH_KEY_FILE": str(tmp_path / "key")}
    )


def run(program: str, environment: dict[str, str], encryption: str) -> str:
    """What the program prints."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", f"import os, ofipy\n{program}"],
        env=environment | {"OFIPY_ENCRYPTION": encryption},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("encryption", ["auto", "required"])
def test_a_neighbour_is_served(environment: dict[str, str], encryption: str) -> None:
    run(NEIGHBOUR, environment, encryption)


def check_remedy(text: str) -> None:
    assert "OpenSSL 3" in text
    assert "install libssl3" in text
    assert "OFIPY_ENCRYPTION=off" in text


def test_another_host_is_not_reached(environment: dict[str, str]) -> None:
    check_remedy(run(OTHER_HOST, environment, "auto"))
    check_remedy(run(OTHER_HOST, environment, "required"))


def test_tcp_by_name_opens_unless_everything_is_encrypted(environment: dict[str, str]) -> None:
    assert run(BY_NAME, environment, "auto") == ""
    check_remedy(run(BY_NAME, environment, "required"))


def test_a_job_of_this_host(environment: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import ofipy\njob = ofipy.job()\nprint(len(job.exchange(b'x')))\n")
    command = [sys.executable, "-P", "-m", "ofipy", "run", "-n", "2", str(program)]
    own = {"OFIPY_AUTH_KEY_FILE": "", "OFIPY_ENCRYPTION": "required"}
    ran = subprocess.run(
        command, env=environment | own, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("2\n") == 2
