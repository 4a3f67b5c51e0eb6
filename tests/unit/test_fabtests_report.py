# SPDX-License-Identifier: BSD-3-Clause
"""What ``fabtests compare`` makes of a result: charts, a page, a judgement against an earlier one."""

import copy
import importlib.util
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabtests.compare.report.against import LEAST_NOISE, compare_documents
from fabtests.compare.report.charts import charts_of
from fabtests.compare.report.output import Output
from ofipy.cli.support import CommandError, ExitCode

LIBRARIES = ("jinja2", "matplotlib", "plotext")
drawn = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in LIBRARIES),
    reason="the extra `report` is not installed",
)


def figure(value: float, spread: float = 0.02) -> dict[str, Any]:
    return {"value": value, "p99": None, "p999": None, "spread": spread}


def row(case: str, mode: str, size: int, own: float, **peers: float) -> dict[str, Any]:
    metric = "mb_per_sec" if case.endswith("bandwidth") else "usec_per_transfer"
    return {
        "case": case,
        "provider": case.partition("-")[0],
        "mode": mode,
        "bytes": size,
        "metric": metric,
        "ofipy": figure(own),
        "peers": {
            name: {**figure(value), "ratio": own / value, "version": "1"} for name, value in peers.items()
        },
        "bars": [],
    }


def document() -> dict[str, Any]:
    rows = [
        row("shm-latency", "native", 8, 0.2, mpi4py=1.5, libfabric=0.4),
        row("shm-latency", "native", 1024, 0.3, mpi4py=1.7, libfabric=0.5),
        row("shm-latency", "blocking", 8, 0.5, mpi4py=1.5, libfabric=0.4),
        row("tcp-bandwidth", "array", 65536, 9000.0, socket=6000.0),
    ]
    rows[0]["bars"] = [{"peer": "mpi4py", "limit": 0.4, "at_least": False, "met": True}]
    rows[2]["bars"] = [{"peer": "pyzmq", "limit": 0.4, "at_least": False, "met": None}]
    machine = {"cpu": "a <processor>", "cores": 2, "governor": None}
    return {"schema": 1, "machine": machine, "rows": rows, "absent": {"pyzmq": "not installed"}}


def scaled(factor: float, *, rows: int | None = None, peers: float = 1.0) -> dict[str, Any]:
    """The same, the first rows times as slow, and the peers by another factor."""
    found = copy.deepcopy(document())
    for number, each in enumerate(found["rows"]):
        is_time = each["metric"].startswith("usec")
        if rows is None or number < rows:
            each["ofipy"]["value"] *= factor if is_time else 1 / factor
        for peer in each["peers"].values():
            peer["value"] *= peers if is_time else 1 / peers
    return found


class TestCharts:
    def test_one_a_case_with_a_line_a_mode_and_a_peer(self) -> None:
        latency, bandwidth = charts_of(document())
        assert (latency.case, latency.unit, latency.higher_is_better) == ("shm-latency", "µs", False)
        assert {name: each.own for name, each in latency.series.items()} == {
            "ofipy native": True,
            "mpi4py": False,
            "libfabric": False,
            "ofipy blocking": True,
        }
        native = latency.series["ofipy native"]
        assert (native.sizes, native.values) == ([8, 1024], [0.2, 0.3])
        assert latency.sizes == [8, 1024]
        assert (bandwidth.higher_is_better, bandwidth.sizes) == (True, [65536])

    def test_ways_are_lines_of_their_own(self) -> None:
        rows = [row("link-latency", "native", 8, 0.2, shm=0.2) | {"way": "shm"}]
        rows.append(row("link-latency", "native", 8, 5.0, tcp=5.0) | {"way": "tcp"})
        (chart,) = charts_of(document() | {"rows": rows})
        assert set(chart.series) == {"ofipy native by shm", "shm", "ofipy native by tcp", "tcp"}


class TestAgainst:
    def test_the_same_is_as_it_was(self) -> None:
        changes = compare_documents(document(), document())
        assert len(changes) == 4
        assert not any(each.is_regression or each.is_gain for each in changes)

    def test_what_is_slower_is_a_regression_and_what_is_faster_a_gain(self) -> None:
        changes = compare_documents(document(), scaled(1.5, rows=1))
        assert [each.name for each in changes if each.is_regression] == ["shm-latency native 8"]
        assert changes[0].slowdown == pytest.approx(1.5)
        changes = compare_documents(scaled(1.5), document())
        assert all(each.is_gain for each in changes)

    def test_a_slower_machine_is_no_regression(self) -> None:
        changes = compare_documents(document(), scaled(2.0, peers=2.0))
        assert not any(each.is_regression for each in changes)
        assert [each.machine for each in changes] == pytest.approx([2.0] * 4)

    def test_peers_of_another_version_say_nothing_of_the_machine(self) -> None:
        now = scaled(1.0, peers=2.0)
        for each in now["rows"]:
            for peer in each["peers"].values():
                peer["version"] = "2"
        assert [each.machine for each in compare_documents(document(), now)] == [1.0] * 4

    @given(factor=st.floats(0.2, 5.0), spread=st.floats(0.0, 0.2))
    def test_a_regression_exceeds_what_both_runs_spread(self, factor: float, spread: float) -> None:
        then, now = document(), scaled(factor)
        for each in (*then["rows"], *now["rows"]):
            each["peers"], each["ofipy"]["spread"] = {}, spread
        for change in compare_documents(then, now):
            assert change.noise == pytest.approx(max(LEAST_NOISE, 2 * spread))
            assert change.is_regression == (change.slowdown > 1 + change.noise)
            assert change.slowdown == pytest.approx(factor)

    def test_results_without_a_common_row_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no row in common"):
            compare_documents(document() | {"rows": []}, document())
        with pytest.raises(ValueError, match="not a result of fabtests compare, schema 1"):
            compare_documents({"schema": 7}, document())


class TestOutput:
    def test_an_earlier_result_that_cannot_be_read_is_refused_before_the_run(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match=r"cannot read .*nowhere") as caught:
            Output(against=tmp_path / "nowhere")
        assert caught.value.code == ExitCode.USAGE
        (tmp_path / "list").write_text("[]")
        with pytest.raises(CommandError, match="is not a result of fabtests compare"):
            Output(against=tmp_path / "list")

    def test_a_missing_library_is_named_with_the_remedy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        with pytest.raises(CommandError, match=r"plotext is not installed.*\[report\]. in a checkout"):
            Output(plot=True)

    def test_against_returns_the_changes_and_prints_them(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "120")
        earlier = tmp_path / "earlier.json"
        earlier.write_text(json.dumps(document()))
        changes = Output(against=earlier).write(scaled(3.0, rows=1), quietly=False)
        assert [each.is_regression for each in changes] == [True, False, False, False]
        assert re.search(r"shm-latency native 8 .* slower", capsys.readouterr().out)

    @drawn
    def test_files_are_written(self, tmp_path: Path) -> None:
        page, folder = tmp_path / "report.html", tmp_path / "figures"
        Output(html=page, figures=folder).write(document(), quietly=False)
        assert {each.name for each in folder.iterdir()} == {
            f"{name}.{kind}"
            for name in ("shm-latency-us", "tcp-bandwidth-MB-per-s")
            for kind in ("png", "svg")
        }
        assert (folder / "shm-latency-us.png").read_bytes().startswith(b"\x89PNG")
        root = ET.fromstring((folder / "shm-latency-us.svg").read_text())
        texts = {"".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")}
        assert {"ofipy native", "mpi4py", "1k", "shm-latency, µs (less is better)"} <= texts

    @drawn
    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(CommandError, match=r"cannot write .*file"):
            Output(figures=tmp_path / "file").write(document(), quietly=False)


@drawn
class TestPage:
    def test_it_needs_nothing_beside_it(self) -> None:
        from fabtests.compare.report.page import build_page

        page = build_page(document(), compare_documents(document(), scaled(2.0)))
        assert not re.search(r"<(script|link|img|iframe)\b|url\((?!#)|@import", page)
        assert page.count("<svg") == 2
        assert "a &lt;processor&gt;" in page
        assert "pyzmq did not take part" in page
        for words in ("Against the earlier result", "Where a peer is ahead", "Who did not take part"):
            assert words in page

    def test_a_bar_on_a_key_is_told_with_its_value(self) -> None:
        from fabtests.compare.report.page import bars_of

        crowd = row("fan-in", "batch", 8, 2e6, mpi4py=1e6) | {"jain": 0.94}
        crowd["bars"] = [{"peer": None, "limit": 0.95, "at_least": True, "met": False, "key": "jain"}]
        (bar,) = bars_of({"rows": [crowd]})
        assert (bar["limit"], bar["value"], bar["met"]) == ("≥ 0.95 jain", 0.94, False)

    def test_a_bar_on_the_best_of_several_names_them(self) -> None:
        from fabtests.compare.report.page import bars_of

        here = row("shm-bandwidth", "array", 65536, 9e3, ucx=1e4)
        bar = {"peer": "ucx", "limit": 0.95, "at_least": True, "met": False, "among": ["attach", "ucx"]}
        here["bars"] = [bar, bar | {"peer": None, "met": None}]
        judged, absent = bars_of({"rows": [here]})
        assert (judged["limit"], judged["value"]) == ("≥ 0.95 × the best of attach, ucx", pytest.approx(0.9))
        assert (absent["value"], absent["why"]) == (None, "none of attach, ucx took part")

    def test_it_says_where_a_peer_is_ahead(self) -> None:
        from fabtests.compare.report.page import behind

        assert [(each["row"], each["peer"]) for each in behind(document())] == [
            ("shm-latency blocking 8", "libfabric")
        ]
        assert behind(document())[0]["factor"] == pytest.approx(1.25)


@drawn
class TestTerminal:
    def test_charts_of_several_sizes_fit_the_terminal(self) -> None:
        from fabtests.compare.report.terminal import plot

        lines = plot(charts_of(document()), width=70, colours=False).splitlines()
        assert "shm-latency" in lines[0]
        assert not any("tcp-bandwidth" in line for line in lines)  # of one size
        assert max(map(len, lines)) <= 70
        assert "\x1b" not in "".join(lines)
