# SPDX-License-Identifier: BSD-3-Clause
"""The reader of the kernel's files: what is absent, what is followed, and that nothing in a tree makes it raise."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofipy.host import network
from ofipy.host.counter import read_device_counters, read_port_counters
from ofipy.host.device import DEVICES, read_devices
from ofipy.host.tree import Tree
from tests.host import trees


def fill(root: Path, **files: str) -> Tree:
    for name, text in files.items():
        (root / name).write_text(text)
    return Tree(str(root))


def read_everything(tree: Tree) -> object:
    """What all commands read."""
    devices = read_devices(tree)
    interfaces = network.list_interfaces(tree, loopback=True)
    return (
        devices,
        [read_device_counters(tree, f"{DEVICES}/{each.name}") for each in devices],
        [
            read_port_counters(tree, f"{DEVICES}/{each.name}/ports/{port.number}")
            for each in devices
            for port in each.ports
        ],
        [each.bus.gigabits for each in devices if each.bus is not None],
        [network.read_interface(tree, name) for name in interfaces],
        [network.read_interface_counters(tree, name) for name in interfaces],
        network.read_tcp_counters(tree),
    )


class TestValues:
    def test_text(self, tmp_path: Path) -> None:
        tree = fill(tmp_path, a=" one\ntwo \n", empty="\n", escape="red\x1b[31m\n")
        assert (tree.text("a"), tree.line("a")) == ("one\ntwo", "one")
        assert (tree.text("empty"), tree.line("empty")) == ("", None)
        assert tree.line("escape") == "red?[31m"
        assert (tree.text("missing"), tree.line("missing"), tree.number("missing")) == (None, None, None)

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("12\n", 12),
            ("-1\n", -1),
            ("0x2a\n", 42),
            (f"{2**64 - 1}\n", 2**64 - 1),
            ("N/A (no PMA)\n", None),
            ("12 apples\n", None),
            ("٣\n", None),
            ("9" * 5000, None),
            ("0x\n", None),
        ],
    )
    def test_numbers(self, tmp_path: Path, text: str, value: int | None) -> None:
        assert fill(tmp_path, n=text).number("n") == value

    def test_names_are_in_the_order_of_their_numbers(self, tmp_path: Path) -> None:
        assert fill(tmp_path, mlx5_10="", mlx5_2="", eth0="").names("/") == ["eth0", "mlx5_2", "mlx5_10"]

    def test_zeros_of_an_archive_are_no_text(self, tmp_path: Path) -> None:
        recorded = trees.Recorded(files={"sys/a": "5\n"})
        assert Tree(str(recorded.pack(tmp_path / "a.tar.gz"))).number("sys/a") == 5


class TestAbsent:
    def test_what_cannot_be_read(self, tmp_path: Path) -> None:
        tree = fill(tmp_path, closed="5\n", binary="")
        (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
        os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
        (tmp_path / "folder").mkdir()
        if os.geteuid():
            (tmp_path / "closed").chmod(0)
            assert tree.text("closed") is None
        assert tree.number("binary") is None
        assert [tree.text(name) for name in ("pipe", "folder", "a\0b", "x" * 5000)] == [None] * 4
        assert tree.names("pipe") == []

    def test_this_host_refuses_without_an_error(self) -> None:
        # /proc/self/mem is a regular file whose first byte cannot be read: EIO.
        assert Tree().text("proc/self/mem") is None
        assert Tree().line("proc/self/stat") is not None


class TestLinks:
    @pytest.fixture(params=["folder", "archive"])
    def build(self, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[trees.Recorded], Tree]:
        def build(recorded: trees.Recorded) -> Tree:
            if request.param == "folder":
                return Tree(str(recorded.write(tmp_path / "tree")))
            return Tree(str(recorded.pack(tmp_path / "tree.tar.gz")))

        return build

    def test_they_stay_within_the_root(self, build: Callable[[trees.Recorded], Tree]) -> None:
        tree = build(
            trees.Recorded(
                files={"sys/devices/d/value": "inside\n", "etc/hostname": "recorded\n"},
                links={
                    "sys/class/d": "../devices/d",
                    "sys/absolute": "/etc/hostname",
                    "sys/out": "../../../../../../../../etc/hostname",
                    "sys/loop": "loop",
                    "sys/nowhere": "none",
                },
            )
        )
        assert tree.line("sys/class/d/value") == "inside"
        assert tree.place("sys/class/d") == "sys/devices/d"
        assert tree.line("sys/absolute") == tree.line("sys/out") == "recorded"
        assert tree.line("../../etc/hostname") == "recorded"
        assert (tree.text("sys/loop"), tree.place("sys/loop"), tree.place("sys/nowhere")) == (
            None,
            None,
            None,
        )

    def test_both_forms_say_the_same(self, tmp_path: Path) -> None:
        for name, build in trees.ALL.items():
            folder = Tree(str(build().write(tmp_path / name)))
            archive = Tree(str(build().pack(tmp_path / f"{name}.tar.gz")))
            assert read_everything(folder) == read_everything(archive)


class TestRoots:
    def test_this_host(self) -> None:
        assert Tree().is_live
        assert network.read_tcp_counters(Tree())

    @pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08garbage"])
    def test_what_is_neither(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "file"
        file.write_bytes(content)
        with pytest.raises(OSError, match=r"no folder, and no tar archive"):
            Tree(str(file))

    def test_an_archive_that_was_cut(self, tmp_path: Path) -> None:
        file = trees.rxe().pack(tmp_path / "rxe.tar.gz")
        file.write_bytes(file.read_bytes()[:-200])
        with pytest.raises(OSError, match="no tar archive that can be read"):
            Tree(str(file))

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            Tree(str(tmp_path / "none"))

    def test_members_of_no_use(self, tmp_path: Path) -> None:
        with tarfile.open(tmp_path / "a.tar", "w") as archive:
            for name, kind, link in (
                ("../above", tarfile.REGTYPE, ""),
                ("sys/pipe", tarfile.FIFOTYPE, ""),
                ("sys/hard", tarfile.LNKTYPE, "sys/none"),
                ("sys/device", tarfile.CHRTYPE, ""),
            ):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, link
                archive.addfile(member, io.BytesIO())
        tree = Tree(str(tmp_path / "a.tar"))
        assert [tree.line(f"sys/{name}") for name in ("pipe", "hard", "device")] == [None] * 3
        assert tree.names("/") == ["sys"]


# A kernel that is new, a disk that is old, a hand that slipped: files are changed, links bent, names invented.
GARBAGE = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"", b"-1\n", b"N/A (no PMA)\n", b"9" * 30, b"\0" * 8, "４\n".encode(), b"Tcp: a\nTcp: x\n", b":"]
    ),
)
LINK = st.sampled_from(
    ["..", "/", "loop", "../../../..", "a/b/c", "device", "/sys/class/infiniband", "\udcff"]
)


@settings(max_examples=150)
@given(data=st.data(), which=st.sampled_from(sorted(trees.ALL)))
def test_nothing_in_a_tree_raises(
    data: st.DataObject, which: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    recorded = trees.ALL[which]()
    paths = sorted(recorded.files)
    changed = data.draw(st.lists(st.sampled_from(paths), max_size=20))
    contents = {path: data.draw(st.one_of(st.none(), GARBAGE, LINK)) for path in changed}
    for path in data.draw(st.lists(st.sampled_from(sorted(recorded.links)), max_size=2)):
        recorded.links[path] = data.draw(LINK)
    root = tmp_path_factory.mktemp("tree")
    for path, content in contents.items():
        del recorded.files[path]
        if isinstance(content, str):
            recorded.links[path] = content
    recorded.write(root)
    for path, content in contents.items():
        if isinstance(content, bytes) and (root / path).parent.is_dir():
            (root / path).write_bytes(content)
    read_everything(Tree(str(root)))
