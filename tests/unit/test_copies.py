# SPDX-License-Identifier: BSD-3-Clause
"""The program that times ways of copying between two cores: each way copies every byte, and the output is complete."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.copies.library import Library

TREE = Path(__file__).parents[2]
LENGTHS = (0, 1, 15, 16, 63, 64, 127, 129, 4095, 4096, 16384, 70001)
KEYS = {"scenario", "bytes", "way", "copies"} | {
    f"{time}_{value}" for time in ("copy", "total") for value in ("us", "spread", "ratio")
}


def run(*options: str) -> subprocess.CompletedProcess[str]:
    # `python -m` finds the package tests in the current directory.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    command = [sys.executable, "-m", "tests.copies", *options]
    return subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True, timeout=100)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(tmp_path_factory.mktemp("copies"))


@pytest.mark.parametrize("offset", [0, 1, 31, 64])
def test_every_way_copies_every_byte(library: Library, offset: int) -> None:
    assert library.ways[0] == "memcpy"
    for way in filter(library.is_supported, range(len(library.ways))):
        for length in LENGTHS:
            data = bytes((i * 7 + (i >> 8) + way) % 255 + 1 for i in range(length))
            expected = bytes(offset) + data + bytes(offset)
            assert library.copy(way, data, offset) == expected, (library.ways[way], length)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="two cores are needed")
def test_rows_of_every_scenario_and_way(library: Library) -> None:
    done = run("--json", "--seconds", "0.001", "--rounds", "2", "--bytes", "4096,20000")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    ways = [name for way, name in enumerate(library.ways) if library.is_supported(way)]
    assert document["ways"] == ways
    found = [(row["scenario"], row["bytes"], row["way"]) for row in document["rows"]]
    assert found == [
        (name, size, way) for name in library.scenarios for size in (4096, 20000) for way in ways
    ]
    assert all(row.keys() == KEYS and row["total_us"] >= row["copy_us"] for row in document["rows"])
    machine = document["machine"]
    assert machine.keys() >= {"processor", "flags", "caches", "shared_caches", "siblings", "libc", "pinned"}


def test_an_unknown_way_is_refused() -> None:
    done = run("--way", "carrier-pigeon")
    assert done.returncode == 1
    assert "there is no carrier-pigeon; there are memcpy, " in done.stderr
