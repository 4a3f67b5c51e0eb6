# SPDX-License-Identifier: BSD-3-Clause
"""Two guests on one cable, each with a Soft-RoCE device, for tests of a machine outside."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ADDRESSES = {"here": "203.0.113.1", "there": "203.0.113.2"}
MODULES = "crc32_generic,rdma_rxe,rdma_ucm,xt_tcpudp,xt_u32"
# Soft-RoCE treats seven retries as endless, and would never report that the other host is dead.
SETTINGS = {"OFIPY_VERBS_ACK_TIMEOUT": "14", "OFIPY_VERBS_RETRY_COUNT": "6"}


def boot(
    folder: Path, name: str, command: list[str], *, seconds: int, memory: int, **settings: str
) -> subprocess.Popen[str]:
    """Start the guest `name`, which runs the command; both guests may write to the folder.

    Parameters
    ----------
    folder : path
        Where the cable's ends are, too.
    name : str
        ``here`` or ``there``.
    command : list of str
        What runs on the device.
    seconds : int
        When the guest ends in any case.
    memory : int
        MiB.
    **settings : str
        Further variables.
    """
    ends = [folder / "wire here", folder / "wire there"]
    own, other = ends if name == "here" else reversed(ends)
    guest = ["--timeout", str(seconds), "--memory", str(memory), "--cpus", "1", "--modules", MODULES]
    variables = {"ROCE_INTERFACE": "eth0", "ROCE_ADDRESS": ADDRESSES[name], **SETTINGS, **settings}
    told = ["env", *(f"{each}={text}" for each, text in variables.items())]
    guest += ["--wire", str(own), str(other), "--share", str(folder), "--"]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.guest", *guest, *told, "tests/verbs/soft-roce", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONSAFEPATH": ""},
        stdout=subprocess.PIPE,
        text=True,
    )
