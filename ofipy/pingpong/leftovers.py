# SPDX-License-Identifier: BSD-3-Clause
"""What libraries leave: in /dev/shm when the processes that use them are killed, and open in a process that lives."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["count_descriptors", "mapped_by", "remove_leftovers"]

FOLDER = Path("/dev/shm")

# libfabric's shared memory calls a file after process, domain and endpoint; MPICH after its job.
_LIBFABRIC = re.compile(r"(\d+):\d+:\d+")
_MPICH = re.compile(r"mpich_shm_\w+")

_STATISTICS_PAGE = "/memfd:ofipy-stats"


def count_descriptors() -> int:
    """Count the open descriptors of this process, without its statistics pages, which it keeps to its end."""
    return sum(not _read_link(link).startswith(_STATISTICS_PAGE) for link in Path("/proc/self/fd").iterdir())


def _read_link(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:  # closed meanwhile, as the descriptor of the listing is
        return ""


def mapped_by(processes: Iterable[int]) -> set[Path]:
    """Files of MPICH jobs that these processes have mapped; to be asked while they live.

    Parameters
    ----------
    processes : iterable of int
        Process ids; those that are gone have nothing mapped.
    """
    found = set()
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/maps").read_text().splitlines()
        except OSError:
            continue
        paths = (Path(line.split(maxsplit=5)[5]) for line in lines if "/mpich_shm_" in line)
        found |= {path for path in paths if path.parent == FOLDER and _MPICH.fullmatch(path.name)}
    return found


def remove_leftovers(processes: Iterable[int], mapped: Iterable[Path] = ()) -> None:
    """Remove what processes that have ended left, and nothing else.

    Parameters
    ----------
    processes : iterable of int
        Process ids of children, after they have been waited for.
    mapped : iterable of Path
        What `mapped_by` found while they lived.
    """
    ids = {str(process) for process in processes}
    names = FOLDER.glob("*:*:*") if ids else ()
    named = (path for path in names if (match := _LIBFABRIC.fullmatch(path.name)) and match[1] in ids)
    for path in [*mapped, *named]:
        path.unlink(missing_ok=True)
