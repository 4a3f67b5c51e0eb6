# SPDX-License-Identifier: BSD-3-Clause
"""Who runs: ofipy and the peers that are installed, each started when a case first needs it."""

import contextlib
import importlib.util
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fabtests.base.pair import Pair, PairError
from fabtests.compare import libfabric

__all__ = ["Absent", "Field"]

INSTALL = "pip install ofipy[bench]"

CONTENDERS = {
    "ofipy": "fabtests.compare.ofipy_side:Ofipy",
    "multiprocessing": "fabtests.compare.peers.multiprocessing_peer:Multiprocessing",
    "pyzmq": "fabtests.compare.peers.pyzmq_peer:PyZmq",
    "mpi4py": "fabtests.compare.peers.mpi4py_peer:Mpi",
    "attach": "fabtests.compare.peers.attach_peer:Attach",
}
MODULES = {"pyzmq": "zmq", "mpi4py": "mpi4py"}


@dataclass(frozen=True, slots=True)
class Absent(Exception):
    """A peer that cannot take part."""

    reason: str
    """One sentence, with the remedy."""

    def __str__(self) -> str:
        return self.reason


class Field:
    """Start contenders and keep them until the end.

    Parameters
    ----------
    provider : str
        The provider that ofipy uses.
    cores : tuple of int
        The core of each side.
    """

    def __init__(self, *, provider: str, cores: tuple[int, int]) -> None:
        self.provider = provider
        self.cores = cores
        self.absent: dict[str, str] = {}
        self.versions: dict[str, str] = {}
        self._pairs: dict[str, Pair] = {}

    def has(self, name: str) -> bool:
        """Whether this contender can run; asked the first time, it is started."""
        if name in self.versions:
            return True
        if name not in self.absent:
            try:
                self._start(name)
            except Absent as why:
                self.absent[name] = why.reason
        return name in self.versions

    def drop(self, name: str, reason: str) -> None:
        """Take a peer out of the run."""
        self.versions.pop(name, None)
        if (pair := self._pairs.pop(name, None)) is not None:
            pair.kill()
        self.absent[name] = reason

    def pair(self, name: str) -> Pair:
        """The worker processes of a contender that is there."""
        return self._pairs[name]

    def _start(self, name: str) -> None:
        if name == "libfabric":
            if shutil.which(libfabric.PINGPONG) is None:
                raise Absent(f"{libfabric.PINGPONG} is not on PATH: install libfabric's fabtests")
            self.versions[name] = libfabric.library_version()
            return
        if name == "matcher":
            self._pairs[name] = Pair("fabtests.compare.matcher:Matcher", cores=self.cores, count=1)
            self.versions[name] = self._pairs[name].call("version")[0]
            return
        module = MODULES.get(name)
        if module is not None and importlib.util.find_spec(module) is None:
            raise Absent(f"not installed: {INSTALL}")
        options: dict[str, Any] = {"provider": self.provider} if name == "ofipy" else {}
        launcher = find_mpiexec() if name == "mpi4py" else []
        try:
            pair = Pair(
                "fabtests.compare.bench:Bench",
                cores=self.cores,
                launcher=launcher,
                contender=CONTENDERS[name],
                **options,
            )
            self._pairs[name] = pair
            # One offer at a time: the second side may need what the first has set up.
            offers = pair.call("offer")
            pair.call_each("meet", [(offers[1],), (offers[0],)])
            self.versions[name] = pair.call("version")[0]
        except PairError as error:
            self._pairs.pop(name, None)
            if name == "ofipy":
                raise
            raise Absent(f"does not start: {error.kind}: {error}") from error

    def close(self) -> None:
        """End all workers."""
        with contextlib.ExitStack() as stack:
            for pair in self._pairs.values():
                stack.callback(pair.close)
        self._pairs.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        for pair in self._pairs.values():
            pair.kill()


def find_mpiexec() -> list[str]:
    """MPICH's launcher: beside this Python, where the wheel puts it, or on the PATH.

    Raises
    ------
    Absent
        When there is none. Its full name is asked for, since other libraries install an ``mpiexec`` too.
    """
    beside = Path(sys.executable).parent / "mpiexec.hydra"
    found = str(beside) if beside.exists() else shutil.which("mpiexec.hydra")
    if found is None:
        raise Absent(f"MPICH's mpiexec.hydra is missing: {INSTALL}")
    return [found, "-n", "2"]
