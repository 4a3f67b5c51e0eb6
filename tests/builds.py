# SPDX-License-Identifier: BSD-3-Clause
"""Builds of ofipy beside the one that is installed, each in a virtual environment of its own under ``build/``."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["TREE", "install", "make_environment"]

TREE = Path(__file__).resolve().parent.parent


def make_environment(folder: Path) -> Path:
    """A virtual environment that has the packages of the calling one too. Returns its interpreter."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, symlinks=True)
    # As paths alone: files like that of an editable ofipy, which would come first, are not read there.
    host = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "host.pth").write_text("".join(f"{path}\n" for path in host))
    return python


def install(
    python: Path, source: Path, *, build: Path, options: Iterable[str] = (), variables: Mapping[str, str] = {}
) -> None:
    """Build a package and install it into an environment; again only what has changed.

    Parameters
    ----------
    python : Path
        The environment's interpreter.
    source : Path
        The package's folder.
    build : Path
        Where the build is kept.
    options : iterable of str
        Of meson.
    variables : mapping
        Environment variables of the build.
    """
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "-q"]
    how = ["--no-build-isolation", "--no-deps", "--no-index", "--force-reinstall", f"-Cbuild-dir={build}"]
    settings = [f"-Csetup-args={option}" for option in options]
    # Beside the caller's interpreter are the tools that build.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}
    subprocess.run([*pip, *how, *settings, str(source)], check=True, env=environment)
