# SPDX-License-Identifier: BSD-3-Clause
"""The conformance suite fails where ``OFIPY_ENCRYPTION=required`` and a peer over tcp was not encrypted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_tcp_encryption import needs_openssl

from ofipy.cli.key import new_key

ROOT = Path(__file__).parents[2]

# Domains that do not do what the environment says. Their connections come up, move everything and end between two looks
# of a close, as they do by helper threads on a busy machine.
PLAIN_DOMAINS = """
import os
import time
import ofipy
from ofipy._base import lifetime, linger
opened, progress_all, drains = ofipy.Domain.__init__, lifetime._progress_all, linger.Departure.drains
def open_plain(*arguments, **options):
    os.environ["OFIPY_ENCRYPTION"] = "off"
    try:
        opened(*arguments, **options | {"progress": ofipy.Progress.MANUAL})
    finally:
        os.environ["OFIPY_ENCRYPTION"] = "required"
def progress_for_long():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        progress_all()
    return True
def drain_for_long(departure):
    stays = drains(departure)
    progress_for_long()
    return stays
ofipy.Domain.__init__ = open_plain
lifetime._progress_all = progress_for_long
linger.Departure.drains = drain_for_long
"""


def run_suite(directory: Path, test: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run one test of the suite over tcp, with encryption required."""
    new_key(directory / "key")
    asked = {"OFIPY_AUTH_KEY_FILE": str(directory / "key"), "OFIPY_ENCRYPTION": "required"}
    file = ROOT / "tests" / "conformance" / test.partition("::")[0]
    options += ("--provider", "tcp", "-n", "0", "-k", test.partition("::")[2])
    return subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", str(file), *options],
        cwd=ROOT,
        env=os.environ | asked | {"PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@needs_openssl
@pytest.mark.parametrize("test", ["test_messages.py::test_to_oneself", "test_linger.py::test_writes_arrive"])
def test_a_plain_peer_fails_the_test(tmp_path: Path, test: str) -> None:
    encrypted = run_suite(tmp_path, test)
    assert encrypted.returncode == 0, encrypted.stdout
    assert "'encrypted': " in encrypted.stdout
    (tmp_path / "key").unlink()
    (tmp_path / "plain_domains.py").write_text(PLAIN_DOMAINS)
    plain = run_suite(tmp_path, test, "-p", "plain_domains")
    assert plain.returncode == pytest.ExitCode.TESTS_FAILED
    assert "OFIPY_ENCRYPTION=required, and peers over tcp were {'plain': " in plain.stdout


@needs_openssl
def test_a_run_that_saw_no_encrypted_peer_fails(tmp_path: Path) -> None:
    run = run_suite(tmp_path, "test_connection.py::test_nobody_listens")
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 passed" in run.stdout
    assert "no peer over tcp was seen encrypted" in run.stdout
