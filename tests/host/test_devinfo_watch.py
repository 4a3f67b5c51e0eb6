# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy devinfo --watch``: changes of devices, ports and interfaces while it looks again and again."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ofipy.cli.devinfo import describe_present
from ofipy.cli.devinfo_watch import find_changes, flatten
from ofipy.host.device import read_devices
from ofipy.host.tree import Tree
from tests.host import trees

PORT = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/infiniband/mlx5_10/ports/1"
INTERFACE = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/net/ens1f0np0"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with a device for RoCE."""
    return trees.mlx5_roce().write(tmp_path / "machine")


def values(root: Path) -> dict[tuple[str, str], Any]:
    tree = Tree(str(root))
    return flatten(describe_present(tree, read_devices(tree)))


@pytest.mark.parametrize(
    ("file", "text", "change"),
    [
        (f"{PORT}/state", "1: DOWN", ("mlx5_10/1", "state", "ACTIVE", "DOWN")),
        (f"{PORT}/phys_state", "2: Polling", ("mlx5_10/1", "physical_state", "LinkUp", "Polling")),
        (f"{PORT}/lid", "0x5", ("mlx5_10/1", "lid", 0, 5)),
        (f"{PORT}/sm_lid", "0x7", ("mlx5_10/1", "sm_lid", 0, 7)),
        (
            f"{PORT}/gids/3",
            "0000:0000:0000:0000:0000:ffff:0a00:0002",
            ("mlx5_10/1", "gids 3 gid", trees.MAPPED, "0000:0000:0000:0000:0000:ffff:0a00:0002"),
        ),
        (f"{PORT}/pkeys/0", "0x8001", ("mlx5_10/1", "partition_keys 0 key", "0xffff", "0x8001")),
        (f"{INTERFACE}/operstate", "down", ("ens1f0np0", "state", "up", "down")),
        (f"{INTERFACE}/ecn/roce_np/enable/3", "0", ("ens1f0np0", "ecn_notification", (3,), ())),
        (
            f"{INTERFACE}/../../current_link_width",
            "4",
            ("mlx5_10", "bus links 0000:81:00.0 width", 8, 4),
        ),
    ],
    ids=lambda each: each[1] if isinstance(each, tuple) else None,
)
def test_changes(root: Path, file: str, text: str, change: tuple[Any, ...]) -> None:
    before = values(root)
    assert list(find_changes(before, values(root))) == []
    (root / file).write_text(f"{text}\n")
    found = list(find_changes(before, values(root)))
    assert change in found
    # What a link carries follows from its width.
    assert len(found) == (2 if "width" in change[1] else 1)


def test_figures_are_no_events(root: Path) -> None:
    before = values(root)
    (root / INTERFACE / "../../hwmon/hwmon3/temp1_input").write_text("90000\n")
    (root / PORT / "hw_counters/packet_seq_err").write_text("7\n")
    assert list(find_changes(before, values(root))) == []


@pytest.mark.parametrize(
    ("read", "gone", "left"),
    [
        ("fw_ver", "sys/class/infiniband/mlx5_10", set()),
        ("rate", PORT, {"mlx5_10", "ens1f0np0"}),
        ("operstate", "sys/class/net/ens1f0np0", {"mlx5_10", "mlx5_10/1"}),
    ],
    ids=["device", "port", "interface"],
)
def test_what_goes_while_it_is_read_is_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch, read: str, gone: str, left: set[str]
) -> None:
    """Otherwise the rest of its values would change to none, as if the device were there without them."""
    line = Tree.line

    def go_and_read(tree: Tree, path: str) -> str | None:
        if path.endswith(f"/{read}"):
            (root / gone).rename(root / "gone")
        return line(tree, path)

    before = values(root)
    monkeypatch.setattr(Tree, "line", go_and_read)
    now = values(root)
    assert {place for place, _ in now} == left
    changes = list(find_changes(before, now))
    assert {place for place, name, _, _ in changes if name == "presence"} == {
        place for place, _ in before
    } - left
    # The parameters of congestion control lie below the interface.
    others = {name.partition(" ")[0] for _, name, _, _ in changes} - {"presence"}
    assert others == ({"congestion_control"} if read == "operstate" else set())


def write_whole(file: Path, text: str) -> None:
    """Write as the kernel does: whoever reads finds the old text or the new one."""
    new = file.with_name("new")
    new.write_text(text)
    new.replace(file)


@contextmanager
def watching(root: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, which has looked once. Yields it with its first line."""
    command = [sys.executable, "-P", "-m", "ofipy", "devinfo", "--watch", "0.01", "--root", str(root), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            first = process.stdout.readline()
            assert "watching" in process.stderr.readline()
            yield process, first
        finally:
            process.terminate()


def test_a_port_that_goes_down_and_a_device_that_goes(root: Path) -> None:
    with watching(root, "--json") as (process, first):
        assert process.stdout is not None
        assert json.loads(first)["devices"][0]["ports"][0]["state"] == "ACTIVE"
        write_whole(root / PORT / "state", "1: DOWN\n")
        change = json.loads(process.stdout.readline())
        assert change.pop("time") > 1e9
        assert change == {"schema": 1, "place": "mlx5_10/1", "name": "state", "from": "ACTIVE", "to": "DOWN"}
        link = root / "sys/class/infiniband/mlx5_10"
        target = link.readlink()
        link.unlink()
        gone = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert {(each["place"], each["name"], each["from"], each["to"]) for each in gone} == {
            (place, "presence", True, False) for place in ("mlx5_10", "mlx5_10/1", "ens1f0np0")
        }
        link.symlink_to(target)
        again = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert {each["to"] for each in again} == {True}


def test_lines_for_people(root: Path) -> None:
    with watching(root, "mlx5_10/1") as (process, first):
        assert process.stdout is not None
        assert first.startswith("mlx5_10")
        write_whole(root / PORT / "state", "1: DOWN\n")
        for line in process.stdout:
            if "→" in line:
                break
        assert re.fullmatch(r"\d\d:\d\d:\d\d mlx5_10/1 state: ACTIVE → DOWN\n", line)


def test_no_device_yet(tmp_path: Path) -> None:
    """Whoever watches may wait for the first device."""
    root = tmp_path / "machine"
    root.mkdir()
    with watching(root, "--json") as (process, first):
        assert process.stdout is not None
        assert json.loads(first)["devices"] == []
        trees.mlx4().write(root)
        assert json.loads(process.stdout.readline())["to"] is True
