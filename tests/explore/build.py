# SPDX-License-Identifier: BSD-3-Clause
"""Builds of a source tree for scenarios: the Python package, and C without Python. Again only what has changed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

from tests.builds import TREE, install, make_environment

from .scenario import CannotRun

__all__ = ["FOLDER", "Build"]

FOLDER = TREE / "build" / "explore"
SOURCES = ("ofipy", "native", "providers", "tests/rdm_fake_provider")
DASK = "distributed>=2025.1"
TOOLS = ("meson>=1.3", "meson-python>=0.22", "ninja", "cffi>=2.1")


@dataclass
class Build:
    """A source tree, and what was built of it.

    The programs and preload libraries of ``tests/explore`` are always those of the calling tree. The core, the
    providers and the package are those of `tree`.
    """

    tree: Path = TREE
    """The sources: the calling tree, or a copy in which something is undone."""
    folder: Path = FOLDER / "tree"
    """Where builds of this tree are stored."""

    @cached_property
    def python(self) -> Path:
        """The interpreter of an environment in which this tree is installed."""
        python = make_environment(self.folder / "python")
        _add_tools(python)
        stamp, state = self.folder / "installed.json", self._describe_sources()
        before: dict[str, str] = json.loads(stamp.read_text()) if stamp.exists() else {}
        changed = {name for name in before.keys() | state.keys() if before.get(name) != state.get(name)}
        if not changed:
            return python
        if before and all(name in state and _is_module(name) for name in changed):
            self._replace_modules(python, changed)
            stamp.write_text(json.dumps(state))
            return python
        stamp.unlink(missing_ok=True)
        variables = {"PATH": tool_path()}
        options = ("-Dbuildtype=debugoptimized", "-Db_ndebug=false")
        try:
            install(python, self.tree, build=self.folder / "package", options=options, variables=variables)
            fake = self.tree / "tests" / "rdm_fake_provider"
            install(python, fake, build=self.folder / "rdmfake", options=options, variables=variables)
            self._install_dask(python)
        except subprocess.CalledProcessError as error:
            raise CannotRun(f"the package of {self.tree} cannot be built; see above") from error
        stamp.write_text(json.dumps(state))
        return python

    def _replace_modules(self, python: Path, names: Iterable[str]) -> None:
        """Nothing is built of modules of Python: the installed ones are replaced."""
        site = next(python.parent.parent.glob("lib/python*/site-packages"))
        for name in names:
            shutil.copyfile(self.tree / name, site / name)

    def _install_dask(self, python: Path) -> None:
        """Scenarios of Dask need it; where it cannot be had they are left out."""
        probe = [str(python), "-P", "-c", "import distributed"]
        if subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode:
            pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "-q", DASK]
            subprocess.run(pip, stderr=subprocess.DEVNULL, check=False)

    def _describe_sources(self) -> dict[str, str]:
        """A digest of each file that is built."""
        found = {"": sys.version}
        for name in SOURCES:
            for path in sorted((self.tree / name).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    found[str(path.relative_to(self.tree))] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def compile(self, name: str, *options: str) -> Path:
        """A meson build of C without Python: ``folder/name``, with these options. Returns its folder."""
        folder = self.folder / name
        environment = {**os.environ, "PATH": tool_path()}
        what = ["--reconfigure"] if (folder / "build.ninja").exists() else []
        setup = ["meson", "setup", *what, str(folder), str(self.tree), "-Dpython=false", *options]
        for command in (setup, ["ninja", "-C", str(folder)]):
            done = subprocess.run(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode:
                raise CannotRun(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")
        return folder

    def library(self, name: str, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
        """A shared object for ``LD_PRELOAD``, compiled from files of ``tests/explore/native``."""
        target = self.folder / f"{name}.so"
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or any(source.stat().st_mtime > target.stat().st_mtime for source in sources):
            compiler = os.environ.get("CC", "cc").split()
            fixed = [
                "-std=c11",
                "-D_GNU_SOURCE",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-O1",
                "-g",
                "-fPIC",
                "-shared",
            ]
            command = [*compiler, *fixed, *flags, "-o", str(target), *map(str, sources), "-ldl", "-pthread"]
            try:
                subprocess.run(command, check=True)
            except (OSError, subprocess.CalledProcessError) as error:
                raise CannotRun(f"{target.name} cannot be compiled: {error}") from error
        return target


def _is_module(name: str) -> bool:
    """Whether a file of the sources is installed as it is."""
    return name.startswith("ofipy/") and name.endswith(".py")


def tool_path() -> str:
    """PATH with meson and ninja."""
    return f"{_tool_python().parent}{os.pathsep}{os.environ['PATH']}"


@cache
def _tool_python() -> Path:
    """The interpreter of an environment with what builds: the calling one, or one below ``build``."""
    beside = Path(sys.executable).parent
    if find_spec("mesonpy") and all((beside / name).exists() for name in ("meson", "ninja")):
        return Path(sys.executable)
    python = make_environment(FOLDER / "tools")
    if not (python.parent / "meson").exists():
        pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "-q", *TOOLS]
        try:
            subprocess.run(pip, check=True)
        except subprocess.CalledProcessError as error:
            raise CannotRun(
                "meson, meson-python and ninja are needed, and pip cannot install them"
            ) from error
    return python


def _add_tools(python: Path) -> None:
    """Let an environment import what builds, where it is not among the calling one's packages."""
    tools = _tool_python()
    if tools != Path(sys.executable):
        site, found = (next(each.parent.parent.glob("lib/python*/site-packages")) for each in (python, tools))
        (site / "tools.pth").write_text(f"{found}\n")
