# SPDX-License-Identifier: BSD-3-Clause
"""Run Python against ofipy built with the address and undefined behaviour sanitizers.

``python -m tests.asan -m pytest tests/api`` builds this tree into an environment of its own under ``build/``, again
only what has changed, and runs the interpreter there with these arguments. The packages that the calling environment
has are there too. Without arguments it only builds.

What a sanitizer finds is printed with the stacks of C and of Python, and ends the process by SIGABRT.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
ENVIRONMENT = TREE / "build" / "sanitized"
# The fake provider too: it is one of the providers that a suite runs over.
PACKAGES = {"ofipy": TREE, "fake": TREE / "tests" / "fake_provider"}
OPTIONS = ("-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized", "-Db_lundef=false")


def make_environment() -> Path:
    """The environment's interpreter."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, symlinks=True)
    # A path alone: files like that of an editable ofipy, which would come first, are not read there.
    host = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    site = next(ENVIRONMENT.glob("lib/python*/site-packages"))
    (site / "host.pth").write_text("".join(f"{path}\n" for path in host))
    return python


def build(python: Path) -> None:
    """Install this tree, with sanitizers, into the environment."""
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(python), "install", "-q"]
    how = ["--no-build-isolation", "--no-deps", "--no-index", "--force-reinstall"]
    # Beside the caller's interpreter are the tools that build.
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    for name, source in PACKAGES.items():
        folder = f"-Cbuild-dir={ENVIRONMENT / 'build' / name}"
        settings = [f"-Csetup-args={option}" for option in OPTIONS]
        subprocess.run([*pip, *how, folder, *settings, str(source)], check=True, env=environment)
        # What follows imports ofipy, to ask where its headers are.
        environment |= {"LD_PRELOAD": runtime("libasan.so"), "ASAN_OPTIONS": "detect_leaks=0"}


def runtime(name: str) -> str:
    """Path of a library of the compiler's."""
    compiler = os.environ.get("CC", "gcc")
    found = subprocess.run(
        [*compiler.split(), f"-print-file-name={name}"], check=True, stdout=subprocess.PIPE, text=True
    )
    return found.stdout.strip()


def environment_variables() -> dict[str, str]:
    """What the sanitizers need, for the interpreter and everything that it starts."""
    settings = {
        # The interpreter itself is not built with the sanitizer, so its runtime has to be there first.
        "LD_PRELOAD": runtime("libasan.so"),
        # Python keeps much until the end; what a core leaks is for the native tests.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1",
        # Its own allocator would hide the use of objects that are gone.
        "PYTHONMALLOC": "malloc",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONSAFEPATH": "1",
    }
    return os.environ | settings | {"PATH": f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def main() -> None:
    python = make_environment()
    build(python)
    if len(sys.argv) > 1:
        os.execve(python, [str(python), *sys.argv[1:]], environment_variables())


if __name__ == "__main__":
    main()
