# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of the doctor is provoked by a test: by a recorded tree, or by the test that is named here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ofipy.doctor.rules import RULES
from tests.host.test_doctor_rules import FAULTS

TESTS = Path(__file__).parents[1]
ASKED = "unit/test_cli_doctor.py::TestCommand::test_what_was_asked_for_and_is_not_there"
MEASURED = "host/test_doctor_peer.py::TestRules::test_each_alone"
PROCESSES = "host/test_doctor_processes.py::TestReal"

PROVOKED: dict[str, tuple[str, ...]] = {
    "process.provider": (ASKED,),
    "process.congestion_control": (ASKED,),
    "process.key": (ASKED,),
    "process.accepted_keys": (ASKED,),
    "process.encryption": (ASKED,),
    "process.libfabric": (ASKED,),
    "process.interfaces": ("unit/test_cli_doctor.py::TestNetworks::test_interfaces",),
    "process.attach": ("unit/test_cli_doctor.py::TestAttach::test_refused_by_yama",),
    "process.libibverbs": ("unit/test_cli_doctor.py::TestNetworks::test_an_rdma_device_that_cannot_be_used",),
    "host.clock": (MEASURED,),
    "net.mtu": (MEASURED, "verbs/hosts/doctor.py::test_another_mtu"),
    "net.port": (
        MEASURED,
        "network/test_doctor.py::TestFaults::test_a_filtered_port",
        "verbs/hosts/doctor.py::test_the_port_of_roce_is_filtered",
        "verbs/hosts/doctor.py::test_another_key",
    ),
    "port.retransmit": (MEASURED, "verbs/hosts/doctor.py::test_loss"),
    "port.congestion": (MEASURED, "verbs/hosts/doctor.py::test_marks_of_congestion"),
    "ladder.raw": (MEASURED, "network/test_doctor.py::TestFaults::test_ports_of_measurements_are_filtered"),
    "ladder.provider": (MEASURED,),
    "ladder.application": (MEASURED,),
    "app.no_progress": (f"{PROCESSES}::test_a_stopped_process_makes_no_progress",),
    "app.slow_receiver": (f"{PROCESSES}::test_a_receiver_that_posts_nothing",),
    "app.peer_lag": (f"{PROCESSES}::test_a_peer_that_holds_up_a_sender",),
    "app.way": (
        MEASURED,
        "host/test_doctor_processes.py::TestJudged::test_peers_by_tcp_beside_peers_by_verbs",
    ),
}
"""Rules that no recorded tree can provoke, and those that a measurement provokes, too."""


def find_test(name: str) -> ast.AST:
    """The function, with its decorators."""
    file, *names = name.split("::")
    found: ast.AST = ast.parse((TESTS / file).read_text())
    for each in names:
        found = next(
            node
            for node in ast.iter_child_nodes(found)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == each
        )
    return found


@pytest.mark.parametrize("rule", RULES)
def test_a_test_provokes_it(rule: str) -> None:
    by_trees = {fault_rule for fault_rule, *_ in FAULTS.values()}
    assert rule in by_trees or rule in PROVOKED, "no test provokes this rule"
    for name in PROVOKED.get(rule, ()):
        words = {node.value for node in ast.walk(find_test(name)) if isinstance(node, ast.Constant)}
        assert rule in words, f"{name} does not look for it"


def test_no_rule_is_named_that_there_is_not() -> None:
    assert not (PROVOKED.keys() | {rule for rule, *_ in FAULTS.values()}) - RULES.keys()
