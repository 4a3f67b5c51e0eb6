# SPDX-License-Identifier: BSD-3-Clause
"""Flow control among the metrics: priorities, pause frames, time without a right to send, of several drivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ofipy.exporter.collector import Collector
from ofipy.exporter.device_rows import add_devices
from ofipy.exporter.family import Distribution, Rows
from ofipy.exporter.flow_rows import MOST_EVENTS
from ofipy.host.tree import Tree
from tests.host import trees

Told = dict[tuple[str, ...], float | Distribution]
FRAMES = "ofipy_rdma_pfc_frames_total"
EVENTS = "ofipy_rdma_flow_control_events_total"


def told(rows: Rows) -> Told:
    """Values by the name of the metric and the values of its labels."""
    found = {(family.name, *labels): value for family, each in rows.of.items() for labels, value in each}
    assert len(found) == sum(map(len, rows.of.values()))
    return found


def of(machine: trees.Recorded, tmp_path: Path) -> Told:
    rows = Rows()
    add_devices(rows, Tree(str(machine.write(tmp_path / "machine"))))
    return told(rows)


def with_interface(machine: trees.Recorded, statistics: str) -> trees.Recorded:
    """The machine with an interface of its only adapter, whose driver counts this. There is no ``dcb``."""
    function = next(path for path in machine.files if path.endswith("/numa_node")).rpartition("/")[0]
    machine.add_interface("ens2", function)
    machine.links[f"{function}/net/ens2/device"] = "../.."
    port = next(path for path in machine.files if path.endswith("/ports/1/state")).rpartition("/")[0]
    machine.add_gid(port, 0, trees.MAPPED, "RoCE v2", "ens2")
    machine.add_command("ethtool -S ens2", f"NIC statistics:\n{statistics}")
    return machine


def test_mlx5(tmp_path: Path) -> None:
    """``dcb`` answers, so pause frames are its own and not once more the driver's."""
    found = of(trees.mlx5_roce(), tmp_path)
    enabled = [key[1:] for key, value in found.items() if key[0] == "ofipy_rdma_pfc_enabled" and value]
    assert enabled == [("ens1f0np0", "3")]
    frames = {key[2:]: value for key, value in found.items() if key[0] == FRAMES}
    assert len(frames) == 16
    assert {labels: value for labels, value in frames.items() if value} == {
        ("3", "sent"): 12,
        ("3", "received"): 7,
    }
    paused = {key[2:]: value for key, value in found.items() if key[0] == "ofipy_rdma_paused_seconds_total"}
    assert paused == {("3", "received"): pytest.approx(90e-6)}
    events = {key[2]: value for key, value in found.items() if key[0] == EVENTS}
    assert events == {"rx_discards_phy": 5, "rx_ecn_mark": 3, "tx_pause_storm_warning_events": 0}


@pytest.mark.parametrize(
    ("machine", "statistics"),
    [
        (trees.mlx5_infiniband, "     rx_prio3_pause: 7\n     tx_prio3_pause: 12\n"),
        (trees.bnxt_re, "     rx_pfc_ena_frames_pri3: 7\n     tx_pfc_ena_frames_pri3: 12\n"),
        (trees.irdma, "     rx_priority_3_xoff.nic: 7\n     tx_priority_3_xoff.nic: 12\n"),
    ],
    ids=["mlx5", "bnxt_re", "irdma"],
)
def test_frames_that_the_driver_counts(machine: object, statistics: str, tmp_path: Path) -> None:
    assert callable(machine)
    found = of(with_interface(machine(), statistics), tmp_path)
    assert {key: value for key, value in found.items() if key[0] == FRAMES} == {
        (FRAMES, "ens2", "3", "sent"): 12,
        (FRAMES, "ens2", "3", "received"): 7,
    }
    assert not [key for key in found if key[0] in (EVENTS, "ofipy_rdma_pfc_enabled")]


def test_pauses_of_all_priorities(tmp_path: Path) -> None:
    statistics = "     tx_global_pause_duration: 2500000\n     tx_global_pause: 4\n"
    found = of(with_interface(trees.mlx5_infiniband(), statistics), tmp_path)
    assert found["ofipy_rdma_paused_seconds_total", "ens2", "", "sent"] == 2.5
    assert found[EVENTS, "ens2", "tx_global_pause"] == 4


def test_a_driver_with_many_counters(tmp_path: Path) -> None:
    """Its interface has a bounded number of series."""
    statistics = "".join(f"     rx_discards_{number}: 1\n" for number in range(MOST_EVENTS + 50))
    found = of(with_interface(trees.bnxt_re(), statistics), tmp_path)
    assert len([key for key in found if key[0] == EVENTS]) == MOST_EVENTS


def test_events_are_shed_before_states(tmp_path: Path) -> None:
    statistics = "".join(f"     rx_discards_{number}: 1\n" for number in range(MOST_EVENTS))
    root = with_interface(trees.bnxt_re(), statistics).write(tmp_path / "machine")
    found = told(
        Collector(None, Tree(str(root)), version="1", peers=0, most_series=MOST_EVENTS).collect_rows()
    )
    assert found["ofipy_exporter_dropped_series", EVENTS] == MOST_EVENTS
    assert found["ofipy_rdma_state_id", "bnxt_re0", "1"] == 4


def test_software_and_tools_that_are_missing(tmp_path: Path) -> None:
    found = of(trees.rxe(), tmp_path)
    assert not [key for key in found if "pfc" in key[0] or "pause" in key[0] or key[0] == EVENTS]


def test_parameters_of_congestion_control(tmp_path: Path) -> None:
    found = of(trees.mlx5_roce(), tmp_path)
    parameters = {key[1:]: value for key, value in found.items() if "congestion_parameter" in key[0]}
    assert parameters["mlx5_10", "np_cnp_dscp"] == 48
    assert len(parameters) == 4
