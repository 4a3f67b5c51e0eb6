# SPDX-License-Identifier: BSD-3-Clause
"""Groups of processes over libfabric's providers, which do not report that a process has ended: the job does."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from ofipy.providers.ofi import _bundled
from test_group_failures import ABORTED, SURVIVORS, run_job

PROVIDERS = ["ofi:tcp", "ofi:tcp;ofi_rxm", "ofi:shm"]


@pytest.fixture(autouse=True)
def bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of the wheel mpich, whatever the machine has."""
    path = _bundled().get("OFI_BUNDLED")
    if path is None:
        pytest.skip("the wheel mpich is not installed")
    monkeypatch.setenv("OFIPY_LIBFABRIC", path)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "kinds", ["barrier,broadcast,agree,reduce,gather", "scatter,allgather,alltoall,allreduce,exscan"]
)
def test_survivors_continue(provider: str, kinds: str) -> None:
    dying = len(kinds.split(","))
    ran = run_job(provider, dying + 2, str(SURVIVORS), kinds)
    assert sorted(line.partition("] ")[2] for line in ran.stdout.splitlines()) == ["left: 2"] * 2, ran.stderr
    assert ran.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_group_continues_after_an_abort_and_a_mismatch(provider: str, tmp_path: Path) -> None:
    program = tmp_path / "aborted.py"
    program.write_text(ABORTED)
    ran = run_job(provider, 3, str(program))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("done") == 3
