# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy topology``: hosts, the fabric between them, and both joined; over recordings, and over a simulated fabric."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ofipy.cli.commands import ofipy_command
from ofipy.cli.support import CommandError, ExitCode
from ofipy.topology.dot import quote
from ofipy.topology.fabric import is_fabric, read_fabric, read_names
from ofipy.topology.files import UnknownFile, merge_files
from ofipy.topology.graph import EdgeKind, Graph, NodeKind
from ofipy.topology.judge import find_bottlenecks, mark_degraded
from ofipy.topology.machine import read_neighbours
from tests.command import invoke
from tests.host.healthy import CARDS, healthy
from tests.host.trees import Recorded

FABRICS = Path(__file__).parent / "fabrics"  # made by ibsim out of net.txt
PLAIN = (FABRICS / "plain.txt").read_text()
PORTS = (FABRICS / "ports.txt").read_text()
CABLES = {
    ("leaf1", "node1"), ("leaf1", "node2"), ("leaf2", "node3"), ("leaf2", "node4"), ("leaf1", "spine1"),
    ("leaf2", "spine1"),
}  # fmt: skip
SIMULATOR = shutil.which("ibsim")
DISCOVER = shutil.which("ibnetdiscover", path=f"{os.environ['PATH']}:/usr/sbin")


def run(*words: str, code: int = 0) -> str:
    ran = invoke("topology", *words)
    assert ran.exit_code == code, ran.output
    return ran.output


def document(*words: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Nodes by id, and edges."""
    printed = json.loads(run(*words, "--json"))
    assert printed["schema"] == 1
    return {each["id"]: each for each in printed["nodes"]}, printed["edges"]


def with_gpu() -> Recorded:
    """The healthy host, with a GPU beside the first card, and a console that is none."""
    tree = healthy()
    bridge = CARDS[0].rpartition("/")[0]
    for function, kind, vendor in (
        ("0000:81:00.5", "0x030200", "0x10de"),
        ("0000:81:00.6", "0x030000", "0x1a03"),
    ):
        folder = f"{bridge}/{function}"
        tree.add_link(folder, "16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16")
        tree.files |= {f"{folder}/class": kind, f"{folder}/vendor": vendor, f"{folder}/device": "0x20b0"}
        tree.files |= {f"{folder}/numa_node": "1\n", f"{folder}/local_cpulist": "16-31\n"}
        tree.links[f"sys/bus/pci/devices/{function}"] = "../../../" + folder.removeprefix("sys/")
    for node in (0, 1):
        tree.files[f"sys/devices/system/node/node{node}/distance"] = "10 21\n" if node == 0 else "21 10\n"
    return tree


class TestHost:
    def test_everything_has_its_place(self, tmp_path: Path) -> None:
        root = with_gpu().write(tmp_path / "machine")
        nodes, edges = document("--root", str(root))
        kinds = {name: each["kind"] for name, each in nodes.items()}
        assert kinds["node17"] == "host"
        assert (kinds["node17/node1"], kinds["node17/0000:80:01.0"]) == ("numa", "bridge")
        assert (kinds["node17/mlx5_0"], kinds["node17/mlx5_0/1"]) == ("nic", "port")
        assert [name for name, kind in kinds.items() if kind == "gpu"] == ["node17/0000:81:00.5"]
        above = {each["to"]: (each["from"], each["kind"]) for each in edges}
        assert above["node17/0000:80:01.0"] == ("node17/node1", "contains")
        assert above["node17/mlx5_0"] == ("node17/0000:80:01.0", "pci")
        assert above["node17/0000:81:00.5"] == ("node17/0000:80:01.0", "pci")
        assert above["node17/mlx5_0/1"] == ("node17/mlx5_0", "contains")
        (link,) = [each for each in edges if each["to"] == "node17/mlx5_0"]
        assert (link["width"], link["speed"], link["gigabits"], link["degraded"]) == (
            16,
            "16 GT/s",
            252.1,
            False,
        )
        assert not any(each["bottleneck"] for each in edges)

    def test_a_loose_card_is_the_bottleneck(self, tmp_path: Path) -> None:
        machine = healthy()
        for folder in (CARDS[1], CARDS[1].rpartition("/")[0]):
            machine.files[f"{folder}/current_link_width"] = "4\n"
        root = machine.pack(tmp_path / "machine.tar.gz")
        _, edges = document("--root", str(root))
        assert [each["to"] for each in edges if each["bottleneck"]] == ["node17/mlx5_1"]
        assert "bottleneck: node17/0000:80:02.0 – node17/mlx5_1" in run("--root", str(root))

    def test_a_narrow_slot_is_the_bottleneck_without_being_degraded(self, tmp_path: Path) -> None:
        machine = healthy()
        machine.add_link(CARDS[2], "8.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16")
        machine.add_link(CARDS[2].rpartition("/")[0], "8.0 GT/s PCIe", "16", "8.0 GT/s PCIe", "16")
        _, edges = document("--root", str(machine.write(tmp_path / "machine")))
        assert [(each["to"], each["degraded"]) for each in edges if each["bottleneck"]] == [
            ("node17/mlx5_2", False)
        ]

    def test_the_nearest_nic_of_a_processor(self, tmp_path: Path) -> None:
        machine = with_gpu()
        machine.files[f"{CARDS[1]}/local_cpulist"] = "0-15\n"
        machine.files[f"{CARDS[1]}/numa_node"] = "0\n"
        root = str(machine.write(tmp_path / "machine"))
        first, *others = run("--root", root, "--near", "3").splitlines()
        assert first.startswith("mlx5_1  same NUMA node")
        assert all("distance 21" in each for each in others)
        assert run("--root", root, "--near", "20").startswith("mlx5_0  same NUMA node")

    def test_devices_of_software(self, tmp_path: Path) -> None:
        from tests.host.trees import rxe

        nodes, edges = document("--root", str(rxe().write(tmp_path / "machine")))
        assert nodes["host/rxe0/1"]["kind"] == "port"
        assert [each["from"] for each in edges if each["to"] == "host/rxe0"] == ["host"]

    def test_the_host_that_runs(self) -> None:
        nodes, _ = document()
        assert nodes[os.uname().nodename]["kind"] == "host"


class TestFabric:
    @pytest.mark.parametrize("text", [PLAIN, PORTS], ids=["plain", "ports"])
    def test_it_is_read(self, text: str) -> None:
        assert is_fabric(text)
        graph = read_fabric(text)
        assert {each.name for each in graph.of_kind(NodeKind.SWITCH)} == {"leaf1", "leaf2", "spine1"}
        assert cables(graph) == CABLES
        assert len([each for each in graph.edges.values() if each.kind is EdgeKind.LINK]) == 8

    @pytest.mark.parametrize("text", [PLAIN, PORTS], ids=["plain", "ports"])
    def test_the_cable_with_one_lane_is_the_bottleneck(self, text: str) -> None:
        graph = read_fabric(text)
        mark_degraded(graph)
        (edge,) = find_bottlenecks(graph)
        assert {graph.nodes[end].name for end in (edge.first, edge.second)} == {"leaf1", "spine1"}
        assert (edge.width, edge.speed, edge.gigabits, edge.degraded) == (1, "HDR", 50, True)

    def test_names_of_a_map(self) -> None:
        names = read_names('# comment\n0x200002 "core switch"\n0x0000000000200000 rack-1\n')
        found = {each.name for each in read_fabric(PLAIN, names).of_kind(NodeKind.SWITCH)}
        assert found == {"core switch", "rack-1", "leaf2"}

    def test_what_no_file_is(self) -> None:
        for text in ("hello", "{", '{"schema": 2, "nodes": [], "edges": []}', '{"schema": 1}'):
            with pytest.raises(UnknownFile, match="file"):
                merge_files([("file", text)], {})


def name_of(graph: Graph, node: str) -> str:
    """A switch, or the host of a port."""
    found = graph.nodes[node]
    if found.kind is not NodeKind.PORT:
        return found.name
    nics = [
        each.first for each in graph.edges.values() if each.second == node and each.kind is EdgeKind.CONTAINS
    ]
    return graph.nodes[nics[0]].name if nics else found.name.partition(" port ")[0]


def cables(graph: Graph) -> set[tuple[str, ...]]:
    """What is connected with what."""
    found = [each for each in graph.edges.values() if each.kind is EdgeKind.LINK]
    return {tuple(sorted((name_of(graph, each.first), name_of(graph, each.second)))) for each in found}


def host_of_fabric(number: int) -> Recorded:
    """A host whose card is one of the fabric's: the same GUIDs of the card and of its port."""
    machine = healthy()
    machine.files["proc/sys/kernel/hostname"] = f"node{number}\n"
    card = 0x100000 + 2 * (number - 1)
    device = f"{CARDS[0]}/infiniband/mlx5_0"
    machine.files[f"{device}/node_guid"] = colons(card)
    machine.files[f"{device}/ports/1/gids/0"] = f"fe80:0000:0000:0000:{colons(card + 1)}"
    other_port = f"{CARDS[1]}/infiniband/mlx5_1/ports/1/gids/0"
    machine.files[other_port] = f"fe80:0000:0000:0000:{colons(0xC000 + number)}"
    for other in CARDS[1:]:
        for path in [
            path for path in machine.files if path.startswith(f"{other}/") and path.endswith("node_guid")
        ]:
            machine.files[path] = colons(0xB000 + 16 * number + CARDS.index(other))
    return machine


def colons(guid: int) -> str:
    digits = f"{guid:016x}"
    return ":".join(digits[at : at + 4] for at in range(0, 16, 4)) + "\n"


class TestJoined:
    @pytest.fixture
    def files(self, tmp_path: Path) -> list[str]:
        """Documents of two hosts, and the fabric."""
        paths = []
        for number in (1, 3):
            root = host_of_fabric(number).write(tmp_path / f"machine{number}")
            path = tmp_path / f"node{number}.json"
            path.write_text(run("--root", str(root), "--json"))
            paths.append(str(path))
        return paths

    @pytest.mark.parametrize("kind", ["plain", "ports"])
    def test_hosts_and_fabric_are_joined_by_guid(self, files: list[str], kind: str) -> None:
        nodes, edges = document(*files, str(FABRICS / f"{kind}.txt"))
        links = [each for each in edges if each["kind"] == "link"]
        assert len(links) == 8
        assert {each[end] for each in links for end in ("from", "to")} >= {"node1/mlx5_0/1", "node3/mlx5_0/1"}
        assert "nic 0x0000000000100000" not in nodes
        text = run(*files, str(FABRICS / f"{kind}.txt"))
        assert "– switch leaf1 [1]  HDR x4, 200 Gb/s" in text
        assert "– node2 port 1 [1]  HDR x4, 200 Gb/s" in text
        assert sum(each["to"] == "node3/mlx5_1/1" for each in edges) == 1
        assert "bottleneck" in text

    def test_a_picture_has_every_node_and_cable(self, files: list[str], tmp_path: Path) -> None:
        if shutil.which("dot") is None:
            pytest.skip("dot of Graphviz is not installed")
        picture = tmp_path / "fabric.svg"
        run(*files, str(FABRICS / "plain.txt"), "--svg", str(picture))
        nodes, edges = document(*files, str(FABRICS / "plain.txt"))
        root = ElementTree.fromstring(picture.read_text())
        titles: dict[str, list[str]] = {"node": [], "edge": []}
        for group in root.iter("{http://www.w3.org/2000/svg}g"):
            if group.get("class") in titles:
                titles[str(group.get("class"))].append(
                    group.findtext("{http://www.w3.org/2000/svg}title") or ""
                )
        assert sorted(titles["node"]) == sorted(nodes)
        assert sorted(titles["edge"]) == sorted(f"{each['from']}--{each['to']}" for each in edges)
        assert "#d62728" in picture.read_text()

    def test_the_language_of_graphviz(self, files: list[str]) -> None:
        text = run(*files, "--dot", "-")
        assert text.startswith("graph topology {")
        assert quote('a"b\\\n\x1b') == '"a\\"b\\\\\\n"'

    def test_near_is_for_one_host(self, files: list[str]) -> None:
        run(*files, "--near", "0", code=2)


def test_without_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ofipy.topology.dot.find_tool", lambda name: None)
    words = ["topology", str(FABRICS / "plain.txt"), "--svg", str(tmp_path / "x.svg")]
    with pytest.raises(CommandError, match="apt install graphviz") as caught:
        ofipy_command.main(words, standalone_mode=False)
    assert caught.value.code == ExitCode.NO_PROVIDER


def test_ethernet_switches_by_lldp(tmp_path: Path) -> None:
    told = {
        "lldp": {
            "interface": [
                {"ens1": {"chassis": {"tor-7": {}}, "port": {"id": {"type": "ifname", "value": "Eth1/5"}}}}
            ]
        }
    }
    machine = healthy()
    machine.files["commands/lldpcli_-f_json_show_neighbors.code"] = "0\n"
    machine.files["commands/lldpcli_-f_json_show_neighbors.out"] = json.dumps(told)
    nodes, edges = document("--root", str(machine.write(tmp_path / "machine")))
    assert nodes["switch tor-7"]["kind"] == "switch"
    (link,) = [each for each in edges if each["kind"] == "link"]
    assert (link["from"], link["detail"]) == ("node17/mlx5_2/1", "ens1-Eth1/5")
    assert read_neighbours("no json") == []
    assert read_neighbours('{"lldp": {"interface": []}}') == []


@pytest.fixture(scope="module")
def discover() -> Iterator[Callable[..., str]]:
    """Runs ibnetdiscover in a simulated fabric."""
    libraries = sorted(Path("/usr/lib").glob("**/umad2sim/libumad2sim.so"))
    if SIMULATOR is None or DISCOVER is None or not libraries:
        pytest.skip("ibsim (Debian: ibsim-utils) or ibnetdiscover (infiniband-diags) is not installed")
    environment = os.environ | {"IBSIM_SOCKNAME": f"ofipy-{uuid.uuid4().hex[:12]}", "SIM_HOST": "node1"}
    simulator = subprocess.Popen(
        [SIMULATOR, "-s", str(FABRICS / "net.txt")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, text=True,
    )  # fmt: skip
    try:
        assert simulator.stdout is not None
        while "simulator ready" not in (line := simulator.stdout.readline()):
            assert line, "ibsim has ended"

        def run_there(*words: str) -> str:
            ran = subprocess.run(
                [str(DISCOVER), *words],
                env=environment | {"LD_PRELOAD": str(libraries[0])},
                capture_output=True, text=True, timeout=60, check=True,
            )  # fmt: skip
            return ran.stdout

        yield run_there
    finally:
        simulator.kill()
        simulator.communicate(timeout=60)


@pytest.mark.parametrize("words", [(), ("-p",)], ids=["plain", "ports"])
def test_a_simulated_fabric_is_drawn_as_it_is(
    discover: Callable[..., str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "fabric.txt"
    file.write_text(discover(*words))
    graph = merge_files([(str(file), file.read_text())], {})
    assert cables(graph) == CABLES
    if shutil.which("dot") is not None:
        run(str(file), "--svg", str(tmp_path / "fabric.svg"))
        picture = (tmp_path / "fabric.svg").read_text()
        assert all(f">{name}" in picture for name in ("leaf1", "leaf2", "spine1"))
        assert picture.count('class="edge"') == len(graph.edges)


def test_the_command_itself() -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "ofipy", "topology", "-", "--json"],
        input=PLAIN, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert len(json.loads(ran.stdout)["nodes"]) == 3 + 4 + 4
