# SPDX-License-Identifier: BSD-3-Clause
"""What other tools print about a host: run on this one, or recorded beside the kernel's files.

A recorded tree has the output of ``ethtool -S eth0`` in ``commands/ethtool_-S_eth0.out``, and its exit code in
``commands/ethtool_-S_eth0.code``. A tool that is not installed, that fails or that takes too long is absent.
"""

import os
import shutil
import subprocess

from ofipy.host.tree import Tree

__all__ = ["command_file", "find_tool", "read_command", "run_tool"]

_LONGEST = 10.0  # seconds that a tool may take
_MOST = 1 << 20  # bytes of output that are read
# ethtool and rdma lie where the paths of users other than root do not lead.
_SYSTEM = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def command_file(*words: str) -> str:
    """Where a recorded tree has the output of a command."""
    return f"commands/{'_'.join(words).replace('/', '_')}.out"


def read_command(tree: Tree, *words: str) -> str | None:
    """What a command prints, None if it is absent.

    Parameters
    ----------
    tree : Tree
        This host, or a recorded one: it runs nothing then.
    *words : str
        The command and its arguments.
    """
    file = command_file(*words)
    if not tree.is_live:
        return tree.text(file) if tree.number(file.removesuffix(".out") + ".code") == 0 else None
    run = run_tool(words)
    tree.keep(file, run[1] if run is not None else None, run[0] if run is not None else None)
    return run[1] if run is not None and run[0] == 0 else None


def find_tool(name: str) -> str | None:
    """Where a program is, None if it is not installed."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *_SYSTEM)))


def run_tool(words: tuple[str, ...]) -> tuple[int, str] | None:
    """Run a command without a terminal or a shell, in English. Returns its exit code and what it printed."""
    program = find_tool(words[0])
    if program is None:
        return None
    try:
        ran = subprocess.run(
            (program, *words[1:]),
            env=os.environ | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_LONGEST,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = ran.stdout[:_MOST].decode("utf-8", "replace")
    return ran.returncode, "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)
