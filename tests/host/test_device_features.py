# SPDX-License-Identifier: BSD-3-Clause
"""What single kernels and devices have besides: counters before Linux 4.5, optional ones, each state of a port."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofipy.host.congestion import read_parameters
from ofipy.host.counter import Counter, read_port_counters
from ofipy.host.device import DEVICES, Port, read_device
from ofipy.host.meaning import Kind
from ofipy.host.tree import Tree
from tests.host import trees

PORT = f"{DEVICES}/mlx5_0/ports/1"


def build(tmp_path: Path, machine: trees.Recorded) -> Tree:
    return Tree(str(machine.write(tmp_path / "machine")))


def place(machine: trees.Recorded) -> str:
    """Folder of the first port, behind the link of its class."""
    (folder,) = {
        path.rpartition("/")[0] for path in machine.files if path.endswith("mlx5_0/ports/1/phys_state")
    }
    return folder


def counters_of(tree: Tree) -> dict[str, Counter]:
    return {each.name: each for each in read_port_counters(tree, PORT)}


def port_of(tree: Tree) -> Port:
    return read_device(tree, "mlx5_0").ports[0]


def test_counters_of_kernels_before_4_5(tmp_path: Path) -> None:
    """The counters of 64 bits lay in a folder of their own, and do not stay at a maximum of 32."""
    machine = trees.mlx5_infiniband()
    names = [f"port_{way}_{what}" for way in ("xmit", "rcv") for what in ("data_64", "packets_64")]
    machine.add_counters(
        f"{place(machine)}/counters_ext", names, port_xmit_data_64=1 << 40, port_rcv_packets_64=9
    )
    found = counters_of(build(tmp_path, machine))
    assert (found["port_xmit_data_64"].value, found["port_xmit_data_64"].unit) == (1 << 42, "bytes")
    assert (found["port_rcv_packets_64"].value, found["port_rcv_packets_64"].unit) == (9, "packets")
    assert found["port_xmit_data_64"].source.endswith("ports/1/counters_ext/port_xmit_data_64")
    assert not any(found[name].saturated for name in names)
    assert {found[name].kind for name in names} == {Kind.TRAFFIC}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("cc_rx_ce_pkts", Kind.CONGESTION), ("cc_rx_cnp_pkts", Kind.CONGESTION)),
        *(("cc_tx_cnp_pkts", Kind.CONGESTION), ("rdma_tx_packets", Kind.TRAFFIC)),
        *(
            ("rdma_tx_bytes", Kind.TRAFFIC),
            ("rdma_rx_packets", Kind.TRAFFIC),
            ("rdma_rx_bytes", Kind.TRAFFIC),
        ),
    ],
)
def test_optional_counters(tmp_path: Path, name: str, kind: Kind) -> None:
    """``rdma statistic set … optional-counters`` adds them to those of the port."""
    machine = trees.mlx5_infiniband()
    machine.add_counters(f"{place(machine)}/hw_counters", [name], **{name: 33})
    counter = counters_of(build(tmp_path, machine))[name]
    assert (counter.value, counter.kind) == (33, kind)


@pytest.mark.parametrize(
    "state", ["0: NOP", "1: DOWN", "2: INIT", "3: ARMED", "4: ACTIVE", "5: ACTIVE_DEFER"]
)
def test_states(tmp_path: Path, state: str) -> None:
    machine = trees.mlx5_infiniband()
    machine.files[f"{place(machine)}/state"] = f"{state}\n"
    assert port_of(build(tmp_path, machine)).state == state.partition(": ")[2]


@pytest.mark.parametrize(
    "state",
    [
        *("1: Sleep", "2: Polling", "3: Disabled", "4: PortConfigurationTraining", "5: LinkUp"),
        *("6: LinkErrorRecovery", "7: Phy Test"),
    ],
)
def test_physical_states(tmp_path: Path, state: str) -> None:
    machine = trees.mlx5_infiniband()
    machine.files[f"{place(machine)}/phys_state"] = f"{state}\n"
    assert port_of(build(tmp_path, machine)).physical_state == state.partition(": ")[2]


@pytest.mark.parametrize(
    ("rate", "width", "gigabits"),
    [
        ("2.5 Gb/sec (1X SDR)", 1, 2.5),
        ("10 Gb/sec (4X SDR)", 4, 10),
        ("56 Gb/sec (4X FDR)", 4, 56),
        ("100 Gb/sec (4X EDR)", 4, 100),
        ("100 Gb/sec (2X HDR)", 2, 100),
        ("400 Gb/sec (4X NDR)", 4, 400),
        ("800 Gb/sec (4X XDR)", 4, 800),
    ],
)
def test_rates(tmp_path: Path, rate: str, width: int, gigabits: float) -> None:
    machine = trees.mlx5_infiniband()
    machine.files[f"{place(machine)}/rate"] = f"{rate}\n"
    port = port_of(build(tmp_path, machine))
    assert (port.rate, port.gigabits) == (rate, gigabits)
    assert str(port.width).removesuffix("X") == str(width)


@pytest.mark.parametrize(
    ("machine", "name", "parameters"),
    [
        (
            trees.mlx5_roce(),
            "mlx5_10",
            {
                "np_cnp_dscp": 48,
                "np_min_time_between_cnps": 4,
                "rp_hai_rate": 50,
                "rp_rpg_time_reset": 300,
            },
        ),
        (trees.bnxt_re(), "bnxt_re0", {"tos_dscp": 26}),
        (trees.mlx5_infiniband(), "mlx5_0", {}),
        (trees.rxe(), "rxe0", {}),
    ],
    ids=["mlx5", "bnxt_re", "none", "software"],
)
def test_parameters_of_congestion_control(
    tmp_path: Path, machine: trees.Recorded, name: str, parameters: dict[str, int]
) -> None:
    """Of debugfs and of the vendor's driver; the switches of single priorities are no parameters."""
    tree = build(tmp_path, machine)
    assert read_parameters(tree, read_device(tree, name)) == parameters
