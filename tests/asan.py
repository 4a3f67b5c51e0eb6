# SPDX-License-Identifier: BSD-3-Clause
"""Run Python against ofipy built with the address and undefined behaviour sanitizers.

``python -m tests.asan -m pytest tests/api`` builds this tree into an environment of its own under ``build/``, again
only what has changed, and runs the interpreter there with these arguments. The packages that the calling environment
has are there too. Without arguments it only builds; with ``--built`` in front of them it takes what was built before.

What a sanitizer finds is printed with the stacks of C and of Python, and ends the process by SIGABRT.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from . import quiet_fork
from .builds import TREE, install, make_environment

ENVIRONMENT = TREE / "build" / "sanitized"
OPTIONS = ("-Db_sanitize=address,undefined", "-Dbuildtype=debugoptimized", "-Db_lundef=false")


def build() -> Path:
    """Build this tree, and the fake provider as one that a suite runs over. Returns the interpreter."""
    python, builds = make_environment(ENVIRONMENT), ENVIRONMENT / "build"
    install(python, TREE, build=builds / "ofipy", options=OPTIONS)
    # Its build imports ofipy, to ask where the headers are.
    variables = {"LD_PRELOAD": runtime("libasan.so"), "ASAN_OPTIONS": "detect_leaks=0"}
    fake = TREE / "tests" / "fake_provider"
    install(python, fake, build=builds / "fake", options=OPTIONS, variables=variables)
    let_forks_wait()
    return python


def let_forks_wait() -> None:
    """Have every interpreter of the environment fork only while its other threads sleep."""
    site = next(ENVIRONMENT.glob("lib/python*/site-packages"))
    shutil.copy(Path(quiet_fork.__file__), site / "quiet_fork.py")
    (site / "quiet_fork.pth").write_text("import quiet_fork; quiet_fork.register()\n")


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
        # Python keeps much until the end; what a core leaks is for the native tests. A wild access is reported with the
        # stack of C, and then, at the abort that follows, by Python's fault handler with its own.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allow_user_segv_handler=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1",
        # Its own allocator would hide the use of objects that are gone.
        "PYTHONMALLOC": "malloc",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONSAFEPATH": "1",
    }
    return os.environ | settings | {"PATH": f"{ENVIRONMENT / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def main() -> None:
    arguments = sys.argv[1:]
    built = arguments[:1] == ["--built"]
    python = ENVIRONMENT / "bin" / "python" if built else build()
    if arguments[built:]:
        os.execve(python, [str(python), *arguments[built:]], environment_variables())


if __name__ == "__main__":
    main()
