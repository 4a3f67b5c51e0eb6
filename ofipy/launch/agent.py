# SPDX-License-Identifier: BSD-3-Clause
"""What ssh starts on another host: one process of the job, told by standard input.

The first line is JSON: what to start, and the job's key. Every later one is the number of a signal for it. When the
input ends, whoever started this is gone, and so is the process a moment later.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from typing import Any

from ofipy.launch.placement import Place
from ofipy.launch.start import Job, end_group, ended, key_descriptor, start_here

__all__ = ["describe", "main"]

_GRACE_SECONDS = 1.0
_LINE_MAX = 1 << 24


def describe(job: Job, place: Place, folder: str, environment: dict[str, str]) -> bytes:
    """The first line for this process."""
    names = ("size", "run", "server", "command", "pin")
    document = {
        "job": {name: getattr(job, name) for name in names} | {"key": job.key.hex()},
        "place": {name: getattr(place, name) for name in ("rank", "host", "local_rank", "local_size")},
        "folder": folder,
        "environment": environment,
    }
    return json.dumps(document).encode() + b"\n"


async def run() -> int:
    """Start the process and watch over it; its exit status."""
    told = asyncio.StreamReader(limit=_LINE_MAX)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(told), sys.stdin.buffer
    )
    document: dict[str, Any] = json.loads(await told.readline())
    key = bytes.fromhex(document["job"].pop("key"))
    job, place = Job(**document["job"], key=key), Place(**document["place"])
    environment = os.environ | document["environment"]
    process = await start_here(
        job, place, key_descriptor(key), environment, cwd=document["folder"], stdout=None, stderr=None
    )
    watching = asyncio.create_task(_pass_signals(told, process.pid))
    status = await ended(process)
    watching.cancel()
    end_group(process.pid)
    return status if status >= 0 else 128 - status


async def _pass_signals(told: asyncio.StreamReader, group: int) -> None:
    while line := await told.readline():
        _signal(group, int(line))
    _signal(group, signal.SIGTERM)
    await asyncio.sleep(_GRACE_SECONDS)
    _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def main() -> int:
    """Run it, and tell in one sentence what cannot be started."""
    try:
        return asyncio.run(run())
    except OSError as error:
        print(f"ofipy run: {error.filename or 'cannot start'}: {error.strerror}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main())
