# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --root``: a healthy host has no finding, and each fault has exactly its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ofipy.doctor.congestion import Share, judge_retransmissions
from ofipy.doctor.finding import State
from ofipy.host.command import run_tool
from ofipy.host.tree import Tree
from tests.command import invoke
from tests.host import trees
from tests.host.healthy import CARDS, INTERFACE, LIMITS, PORT, ROCE, healthy
from tests.host.trees import Recorded

Edit = Callable[[Recorded], object]
ETHTOOL = "commands/ethtool_-S_ens1.out"


def put(**given: Any) -> Edit:
    """Files by the end of their path below the first InfiniBand port."""
    return lambda tree: tree.files.update(
        {f"{PORT}/{path.replace('__', '/')}": f"{value}\n" for path, value in given.items()}
    )


def write(path: str, text: str) -> Edit:
    return lambda tree: tree.files.update({path: text})


def both(*edits: Edit) -> Edit:
    return lambda tree: [edit(tree) for edit in edits]


def on_roce(**given: int) -> Edit:
    """Counters of the first RoCE port: the driver's, or else the standard's."""

    def edit(tree: Recorded) -> None:
        for name, value in given.items():
            folder = next(
                each for each in ("counters", "hw_counters") if f"{ROCE}/{each}/{name}" in tree.files
            )
            tree.files[f"{ROCE}/{folder}/{name}"] = f"{value}\n"

    return edit


def alone(edit: Edit) -> Edit:
    """A recording of one moment."""

    def change(tree: Recorded) -> None:
        edit(tree)
        tree.files = {
            path: text for path, text in tree.files.items() if not path.startswith(("before/", "meta"))
        }
        tree.links = {path: target for path, target in tree.links.items() if not path.startswith("before/")}

    return change


def slot(speed: str, width: str, max_speed: str, max_width: str, *, device_max: str) -> Edit:
    """The link of the first card; the device could have 16 GT/s x16, the port above it less."""

    def edit(tree: Recorded) -> None:
        tree.add_link(CARDS[0], speed, width, device_max, "16")
        tree.add_link(CARDS[0].rpartition("/")[0], speed, width, max_speed, max_width)

    return edit


FAULTS: dict[str, tuple[str, str, str, Edit]] = {
    "no cable": ("link.state", "failed", "mlx5_0/1", put(state="1: DOWN", phys_state="2: Polling")),
    "no subnet manager": ("link.state", "failed", "mlx5_0/1", put(state="2: INIT", sm_lid="0x0")),
    "one lane is left": ("link.width", "failed", "mlx5_0/1", put(rate="50 Gb/sec (1X HDR)")),
    "two lanes are left": ("link.width", "warning", "mlx5_0/1", put(rate="100 Gb/sec (2X HDR)")),
    "a slow link": ("link.rate", "warning", "mlx5_0/1", put(rate="100 Gb/sec (4X EDR)")),
    "AER, repaired": (
        "pcie.aer", "warning", "mlx5_0 0000:81:00.0",
        write(f"{CARDS[0]}/aer_dev_correctable", "RxErr 9\nBadTLP 0\n"),
    ),
    "AER, not repaired": (
        "pcie.aer", "failed", "mlx5_0 0000:81:00.0",
        write(f"{CARDS[0]}/aer_dev_nonfatal", "TLP 0\nCmpltTO 2\n"),
    ),
    "AER, long ago": (
        "pcie.aer", "warning", "mlx5_0 0000:81:00.0",
        alone(write(f"{CARDS[0]}/aer_dev_fatal", "TLP 1\n")),
    ),
    "symbols are lost": ("port.integrity", "failed", "mlx5_0/1", put(counters__symbol_error=3)),
    "symbols were lost": ("port.integrity", "warning", "mlx5_0/1", alone(put(counters__symbol_error=65535))),
    "loss": (
        "port.retransmit", "failed", "mlx5_0/1",
        put(counters__port_xmit_packets=10_100_000, hw_counters__packet_seq_err=55),
    ),
    "little loss": (
        "port.retransmit", "warning", "mlx5_0/1",
        put(counters__port_xmit_packets=10_100_000, hw_counters__packet_seq_err=8),
    ),
    "loss, long ago": (
        "port.retransmit", "warning", "mlx5_0/1", alone(put(hw_counters__local_ack_timeout_err=20_000)),
    ),
    "marks": (
        "port.congestion", "warning", "mlx5_2/1",
        on_roce(port_rcv_packets=10_100_000, np_ecn_marked_roce_packets=2_000),
    ),
    "many marks": (
        "port.congestion", "failed", "mlx5_2/1", on_roce(port_xmit_packets=10_100_000, rp_cnp_handled=20_000),
    ),
    "marks of IP": (
        "port.congestion", "failed", "TCP/IP",
        write("proc/net/netstat", "IpExt: InNoECTPkts InECT0Pkts InCEPkts\nIpExt: 900000 100700 310\n"),
    ),
    "TCP sends again": (
        "port.retransmit", "warning", "TCP/IP",
        write("proc/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 5100000 2900\n"),
    ),
    "no credits": (
        "port.pause", "failed", "mlx5_0/1",
        put(counters__port_xmit_wait=901_000, counters__port_xmit_data=250_300_000),
    ),
    "few credits": (
        "port.pause", "warning", "mlx5_0/1",
        put(counters__port_xmit_wait=101_000, counters__port_xmit_data=250_300_000),
    ),
    "paused by PFC": (
        "port.pause", "failed", "ens1", write(ETHTOOL, "NIC statistics:\n     rx_prio3_pause_duration: 300040\n"),
    ),
    "credits, long ago": ("port.pause", "warning", "mlx5_0/1", alone(put(counters__port_xmit_wait=900_000_000))),
    "discards": ("port.discard", "failed", "mlx5_0/1", put(counters__port_xmit_discards=1)),
    "discards of the interface": (
        "port.discard", "failed", "ens1", write(ETHTOOL, "     rx_discards_phy: 9\n"),
    ),
    "a storm of pauses": (
        "port.discard", "warning", "ens1", alone(write(ETHTOOL, "     tx_pause_storm_error_events: 1\n")),
    ),
    "a smaller MTU": ("net.mtu", "warning", "ens1", write(f"{INTERFACE}/mtu", "1500\n")),
    "bound to the other socket": (
        "host.numa", "warning", "mlx5_0",
        both(
            write("proc/self/status", "Cpus_allowed_list:\t0-15\n"),
            *(write(f"{card}/numa_node", "0\n") for card in CARDS[1:]),
            *(write(f"{card}/local_cpulist", "0-15\n") for card in CARDS[1:]),
        ),
    ),
    "an unknown socket": ("host.numa", "warning", "mlx5_0", write(f"{CARDS[0]}/numa_node", "-1\n")),
    "saving power": (
        "host.governor", "warning", "",
        write("sys/devices/system/cpu/cpu7/cpufreq/scaling_governor", "powersave\n"),
    ),
    "little locked memory": (
        "host.memlock", "warning", "",
        write("proc/self/limits", LIMITS.format(files="1048576", locked="65536")),
    ),
    "few descriptors": (
        "host.descriptors", "warning", "",
        write("proc/self/limits", LIMITS.format(files="256", locked="unlimited")),
    ),
    "little memory": (
        "host.shared_memory", "warning", "",
        both(
            write("proc/self/cgroup", "0::/job\n"),
            write("sys/fs/cgroup/job/memory.max", "1000000000\n"),
            write("sys/fs/cgroup/job/memory.current", "900000000\n"),
        ),
    ),
    "a wrong clock": (
        "host.clock", "warning", "",
        write("commands/chronyc_-n_tracking.out", "System time     : 0.250000000 seconds fast of NTP time\n"),
    ),
    "no way to GPU memory": (
        "gpu.peermem", "warning", "",
        both(
            write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104\n"),
            write("sys/module/nvidia_peermem/refcnt", "0\n"),
        ),
    ),
    "hot": (
        "hw.temperature", "warning", "mlx5_0", write(f"{CARDS[0]}/hwmon/hwmon3/temp1_input", "99000\n"),
    ),
    "too hot": (
        "hw.temperature", "failed", "mlx5_0", write(f"{CARDS[0]}/hwmon/hwmon3/temp1_input", "106000\n"),
    ),
    "a card that is loose": (
        "pcie.width", "failed", "mlx5_0 0000:81:00.0",
        slot("16.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16", device_max="16.0 GT/s PCIe"),
    ),
    "a slot that is too slow": (
        "pcie.width", "warning", "mlx5_0 0000:81:00.0",
        slot("8.0 GT/s PCIe", "16", "8.0 GT/s PCIe", "16", device_max="16.0 GT/s PCIe"),
    ),
}  # fmt: skip


def look(root: Path, *words: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit code, and findings."""
    ran = invoke("doctor", "--root", str(root), "--json", *words)
    document = json.loads(ran.stdout)
    assert (document["schema"], document["host"]) == (1, "node17")
    return ran.exit_code, document["checks"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_exactly_its_finding(tmp_path: Path, fault: str) -> None:
    rule, state, place, edit = FAULTS[fault]
    machine = healthy()
    edit(machine)
    code, checks = look(machine.pack(tmp_path / "fault.tar.gz"))
    bad = [each for each in checks if each["state"] in ("warning", "failed")]
    assert [(each["id"], each["state"], each["place"]) for each in bad] == [(rule, state, place)]
    assert bad[0]["remedy"]
    assert bad[0]["sources"]
    assert code == (state == "failed")


def test_a_healthy_host_has_none(tmp_path: Path) -> None:
    code, checks = look(healthy().pack(tmp_path / "healthy.tar.gz"), "--strict")
    assert code == 0
    assert {each["state"] for each in checks} == {"ok"}
    judged = {each["id"] for each in checks}
    # Of the rules that faults provoke, only that on GPUs has nothing to judge here.
    assert judged >= {rule for rule, *_ in FAULTS.values()} - {"gpu.peermem"}


def test_one_moment_suffices(tmp_path: Path) -> None:
    machine = healthy()
    alone(lambda _: None)(machine)
    assert look(machine.write(tmp_path / "machine"), "--strict")[0] == 0


def test_a_warning_counts_if_asked(tmp_path: Path) -> None:
    machine = healthy()
    put(rate="100 Gb/sec (4X EDR)")(machine)
    root = machine.write(tmp_path / "machine")
    for words, code, said in (((), 0, "to look at: "), (("--strict",), 1, "to be mended: ")):
        ran = invoke("doctor", "--root", str(root), *words, standalone_mode=False)
        assert (ran.exception is None) == (code == 0)
        assert f"{said}link rate mlx5_0/1" in f"{ran.stderr}{ran.exception}"
    assert look(root, "--strict")[0] == 1


def test_the_second_port_needs_no_cable(tmp_path: Path) -> None:
    machine = healthy()
    device = PORT.removesuffix("/ports/1")
    machine.add_port(device, 2, state="1: DOWN", phys_state="3: Disabled", link_layer="InfiniBand")
    code, checks = look(machine.write(tmp_path / "machine"), "--strict")
    assert (code, [each["state"] for each in checks if each["place"] == "mlx5_0/2"]) == (0, ["absent"])


def test_the_bus_of_a_virtual_machine_is_not_judged(tmp_path: Path) -> None:
    machine = healthy()
    slot("2.5 GT/s PCIe", "1", "16.0 GT/s PCIe", "32", device_max="16.0 GT/s PCIe")(machine)
    machine.files["proc/cpuinfo"] = "flags : fpu hypervisor\n"
    code, checks = look(machine.write(tmp_path / "machine"), "--strict")
    assert code == 0
    assert {each["state"] for each in checks if each["id"] == "pcie.width"} == {"unjudged"}


@pytest.mark.parametrize("driver", trees.ALL)
def test_every_driver_is_read(tmp_path: Path, driver: str) -> None:
    root = trees.ALL[driver]().pack(tmp_path / "machine.tar.gz")
    ran = invoke("doctor", "--root", str(root), "--json")
    assert ran.exit_code in (0, 1)
    assert any(each["id"] == "link.state" for each in json.loads(ran.stdout)["checks"])


class TestRecord:
    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        """What it printed, and what it said on standard error."""
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "ofipy", "doctor", *words],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert ran.returncode == code, ran.stderr
        return ran.stdout, ran.stderr

    def test_what_is_recorded_is_found_again(self, tmp_path: Path) -> None:
        file = tmp_path / "host.tar.gz"
        assert "findings" in "".join(self.run("--record", str(file)))
        ran = invoke("doctor", "--root", str(file), "--json")
        there = {(each["id"], each["place"]): each["state"] for each in json.loads(ran.stdout)["checks"]}
        here = json.loads(self.run("--json", code=ran.exit_code)[0])["checks"]
        assert there == {
            (each["id"], each["place"]): each["state"]
            for each in here
            if each["step"] not in ("process", "application")
        }

    def test_the_archive_has_both_moments_and_says_how_far_they_are_apart(self, tmp_path: Path) -> None:
        file = tmp_path / "host.tar"
        self.run("--record", str(file))
        tree = Tree(str(file))
        meta = json.loads(tree.text("meta.json") or "")
        assert meta["seconds"] >= 1
        assert meta["host"] == os.uname().nodename
        assert tree.text("proc/net/snmp")
        assert tree.text("before/proc/net/snmp")
        shown = invoke("topology", "--root", str(file), "--json")
        here = invoke("topology", "--json")
        assert json.loads(shown.stdout) == json.loads(here.stdout)

    def test_it_overwrites_nothing(self, tmp_path: Path) -> None:
        file = tmp_path / "host.tar"
        file.write_text("mine")
        assert "exists" in self.run("--record", str(file), code=1)[1]
        assert file.read_text() == "mine"

    def test_it_only_writes(self, tmp_path: Path) -> None:
        self.run("--record", str(tmp_path / "a.tar"), "--json", code=2)


def test_tools_are_run_without_a_shell() -> None:
    assert run_tool(("echo", "$HOME; \x07x")) == (0, "$HOME; ?x\n")
    assert run_tool(("ofipy-has-no-such-tool",)) is None
    assert run_tool(("false",)) == (1, "")


@pytest.mark.parametrize(
    ("retries", "state"), [(1, State.OK), (40, State.OK), (170, State.WARNING), (600, State.FAILED)]
)
def test_retries_of_a_device_of_software(retries: int, state: State) -> None:
    """As two guests counted with 3 % of the packets lost: 170, each of which repeated all that was in flight."""
    finding = judge_retransmissions("rxe0/1", Share(retries, 27_770, True, ()), is_software=True)
    assert finding.state is state
    assert finding.text == f"{retries} retries for 27770 packets sent"
