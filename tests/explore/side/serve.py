# SPDX-License-Identifier: BSD-3-Clause
"""Serve runs of programs: ``serve.py CALLS_LIBRARY PYTHON_LIBRARY``, with the library of faults preloaded.

Each line of input asks for one run, and gets one line of output; both are JSON. Each run is a process of its own, which
is forked from this one: it has imported everything and opened nothing, so a run costs milliseconds, and may crash.
"""

import contextlib
import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "api"), str(FOLDER.parents[1] / "dask")]

from board import Board, Fault, Kind  # noqa: E402
from programs import find_program, list_programs  # noqa: E402

STORY = 10  # steps
MOST_WAITS = 5  # times the limit of a run, on a machine that is too busy for it
STACKS = 0.5  # seconds for a run that hangs to write its stacks


def read_process_map() -> list[tuple[int, int, int, str]]:
    """Ranges of code: begin, end, offset in the file, and the file."""
    result = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if "x" in words[1] and len(words) == 6:
            begin, _, end = words[0].partition("-")
            result.append((int(begin, 16), int(end, 16), int(words[2], 16), words[5]))
    return result


def find_place(ranges: list[tuple[int, int, int, str]], address: int) -> tuple[str, int] | None:
    """The file of code at an address, and the offset there."""
    for begin, end, offset, path in ranges:
        if begin <= address < end:
            return path, address - begin + offset
    return None


def waited_for_processor(pid: int) -> float:
    """Seconds for which the thread of a process that had to wait longest could have run, and no processor was free."""
    longest = 0
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            longest = max(longest, int((task / "schedstat").read_text().split()[1]))
    return longest / 1e9


def wait_for(pid: int, limit: float) -> tuple[int | None, int]:
    """The status of a process; None if it had to be killed. And the seconds, in milliseconds.

    The time for which it waits for a processor does not count, up to a bound.
    """
    begin = time.monotonic()
    descriptor = os.pidfd_open(pid)
    try:
        ended: list[int] = []
        while (
            not ended
            and (
                left := limit + min(waited_for_processor(pid), MOST_WAITS * limit) - time.monotonic() + begin
            )
            > 0
        ):
            ended = select.select([descriptor], [], [], left)[0]
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)
            select.select([descriptor], [], [], STACKS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(descriptor)
    return (status if ended else None), int((time.monotonic() - begin) * 1000)


def fork_run(board: Board, wish: dict[str, Any], errors: BinaryIO) -> tuple[int, int]:
    """Start a run. Returns its pid and a descriptor that its result comes from."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    os.close(reader)
    os.setpgid(0, 0)
    os.dup2(errors.fileno(), 2)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    # Not at the top: it imports ofipy, whose calls are to become steps first.
    from run import run_program

    result = run_program(board, find_program(wish["program"]), wish["seed"])
    os.write(writer, json.dumps(result).encode()[:60000])
    os.close(writer)
    os._exit(0)


def serve(board: Board, wish: dict[str, Any]) -> dict[str, Any]:
    """Make a run, and say what came of it."""
    fault = Fault(**wish["fault"]) if wish.get("fault") else None
    program = find_program(wish["program"])
    board.set(Kind(wish["kinds"]), fault, program.has_endless_naps)
    with tempfile.TemporaryFile() as errors:
        pid, reader = fork_run(board, wish, errors)
        status, duration = wait_for(pid, wish["limit"])
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        with os.fdopen(reader, "rb") as stream:
            text = stream.read()
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    result: dict[str, Any] = json.loads(text) if status == 0 and text else {"verdict": None, "notes": []}
    if status is None:
        result["verdict"] = "hang"
    elif status:
        code = os.waitstatus_to_exitcode(status)
        result["verdict"] = f"crash: signal {-code}" if code < 0 else f"exit status {code}"
    elif not text:
        result["verdict"] = "ended without a result"
    if result["verdict"]:
        result["notes"] += said.splitlines()[-60:]
    ranges = read_process_map()
    result["story"] = [{**step, "caller": find_place(ranges, step["caller"])} for step in board.story(STORY)]
    result["left"] = [[find_place(ranges, address), count] for address, count in result.get("left", [])]
    counts = board.counts() if wish.get("count") else []
    return {**result, "counts": counts, "steps": board.count, "happened": board.happened, "ms": duration}


def main() -> None:
    board = Board(*sys.argv[1:])
    names = list_programs(board)
    import_module("run")
    gc.collect()
    gc.freeze()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps({"programs": names}), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps(serve(board, json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main()
