# SPDX-License-Identifier: BSD-3-Clause
"""The arithmetic and the documents of ``fabtests compare``, over contenders that answer from a table."""

import io
import re
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from fabtests.compare import bars
from fabtests.compare.bars import BARS, BEST, Bar, find_bars
from fabtests.compare.bench import Bench
from fabtests.compare.case import Case, Cell, Line, Round
from fabtests.compare.cases import CASES
from fabtests.compare.collectives import Collectives
from fabtests.compare.command import what_lacks
from fabtests.compare.contender import Contender, Times
from fabtests.compare.entrants import Entrant, recipe_of
from fabtests.compare.latency import ShmLatency
from fabtests.compare.ofipy_side import Ofipy
from fabtests.compare.programs import ProgramError
from fabtests.compare.runner import Best, PeerResult, Row, run_case, select_rows
from fabtests.compare.statistics import Summary, ratio, summarize
from fabtests.compare.tables import build_document, print_tables
from fabtests.compare.ucx import read_result
from ofipy.pingpong.pair import PairError

NONE = np.zeros(0)


def summary(value: float, spread: float = 0.0) -> Summary:
    return Summary(value=value, spread=spread, p99=None, p999=None)


class TestStatistics:
    def test_the_value_is_the_median_and_the_spread_its_middle_half(self) -> None:
        found = summarize([10.0, 12.0, 11.0, 9.0, 1000.0], NONE, higher_is_better=False)
        assert found.value == 11.0
        assert found.spread == pytest.approx((12.0 - 10.0) / 11.0)  # one wild round does not count
        assert found.p99 is None

    def test_percentiles_need_samples(self) -> None:
        few = summarize([1.0], np.arange(999.0), higher_is_better=False)
        some = summarize([1.0], np.arange(1000.0), higher_is_better=False)
        many = summarize([1.0], np.arange(10000.0), higher_is_better=False)
        assert few.p99 is None
        assert some.p99 == pytest.approx(989.01)
        assert some.p999 is None
        assert many.p999 == pytest.approx(9989.001)

    def test_the_tail_of_a_bandwidth_is_its_low_end(self) -> None:
        found = summarize([1.0], np.arange(1000.0), higher_is_better=True)
        assert found.p99 == pytest.approx(9.99)

    def test_the_ratio_is_ofipys_over_the_peers(self) -> None:
        assert ratio(summary(1.0), summary(4.0)) == (0.25, None)

    @pytest.mark.parametrize(("own", "peer", "who"), [(0.26, 0.0, "ofipy"), (0.0, 0.26, "peer")])
    def test_no_ratio_beyond_the_spread(self, own: float, peer: float, who: str) -> None:
        quotient, note = ratio(summary(1.0, own), summary(1.0, peer))
        assert quotient is None
        assert note == f"spread of {who} is 26%, more than 25%"

    def test_a_spread_at_the_limit_still_counts(self) -> None:
        assert ratio(summary(1.0, 0.25), summary(1.0, 0.25))[0] == 1.0


class TestBars:
    def test_every_bar_belongs_to_a_row_with_that_peer(self) -> None:
        for bar in BARS:
            case = CASES[bar.case]
            rows = [row for group in case.groups() for row in group]
            assert bar.line in rows
            peers = case.peer_cells(bar.line).keys()
            assert bar.peer in peers or (bar.key and not bar.peer) or peers & set(bar.among)
            assert bool(bar.among) == (bar.peer == BEST)

    def test_a_bar_is_an_upper_or_a_lower_bound(self) -> None:
        upper = Bar("c", "m", 8, "p", 0.4)
        lower = Bar("c", "m", 8, "p", 2.0, at_least=True)
        assert [upper.met(value) for value in (0.4, 0.41)] == [True, False]
        assert [lower.met(value) for value in (2.0, 1.99)] == [True, False]
        assert (str(upper), str(lower)) == ("≤ 0.4 × p", "≥ 2 × p")
        assert str(Bar("c", "m", 8, "", 0, key="starved")) == "≤ 0 starved"
        assert str(Bar("c", "m", 8, BEST, 0.95, at_least=True, among=("p", "q"))) == "≥ 0.95 × best"

    def test_rows_find_their_bars(self) -> None:
        assert [bar.limit for bar in find_bars("shm-latency", Line("prepared", 8))] == [0.25]
        assert find_bars("shm-latency", Line("prepared", 64)) == ()

    def test_some_bars_are_for_one_kind_of_processor(self, monkeypatch: pytest.MonkeyPatch) -> None:
        line = Line("domain", 1 << 20)
        for processor, peers in (("AMD EPYC", ["attach", BEST]), ("Intel(R) Xeon(R) Processor", [BEST])):
            monkeypatch.setattr(bars, "this_processor", lambda name=processor: name)
            assert [bar.peer for bar in find_bars("shm-bandwidth", line)] == peers


def beside(case: str, mode: str, own: Summary, **peers: Summary) -> Row:
    """A row of 1 MiB."""
    results = {name: PeerResult(each, *ratio(own, each), "1.0") for name, each in peers.items()}
    return Row(CASES[case], Line(mode, 1 << 20), own, results)


class TestBest:
    def test_the_best_peer_is_the_fastest_or_the_one_with_the_highest_rate(self) -> None:
        peers = {"mpi4py": summary(10.0), "ucx": summary(8.0)}
        assert beside("shm-latency", "native", summary(8.2), **peers).best() == Best(
            "ucx", pytest.approx(1.025), "even"
        )
        assert beside("shm-bandwidth", "array", summary(8.2), **peers).best() == Best(
            "mpi4py", pytest.approx(0.82), "behind"
        )
        assert beside("shm-bandwidth", "array", summary(11.0), **peers).document()["best"] == {
            "peer": "mpi4py", "ratio": 1.1, "verdict": "ahead",
        }  # fmt: skip

    def test_a_spread_keeps_it_from_being_judged(self) -> None:
        row = beside("shm-bandwidth", "domain", summary(9.0), attach=summary(10.0, 0.26), ucx=summary(5.0))
        assert row.document()["best"] == {"peer": "attach", "ratio": None, "verdict": None}
        assert {met for bar, met in row.bars() if bar.among} == {None}

    def test_there_is_none_without_peers(self) -> None:
        assert beside("shm-latency", "native", summary(1.0)).document()["best"] is None

    def test_a_bar_counts_the_best_of_those_that_it_names(self) -> None:
        peers = {"openmpi": summary(20.0), "attach": summary(10.0), "ucx": summary(8.0)}
        row = beside("shm-bandwidth", "array", summary(9.6), **peers)
        assert row.document()["best"]["peer"] == "openmpi"
        (found,) = (bar for bar in row.document()["bars"] if "among" in bar)
        assert found == {
            "peer": "attach", "limit": 0.95, "at_least": True, "met": True,
            "among": ["attach", "ucx", "libfabric", "mpi4py"],
        }  # fmt: skip

    def test_a_bar_without_any_that_it_names_is_not_judged(self) -> None:
        row = beside("shm-bandwidth", "array", summary(9.6), pyzmq=summary(1.0))
        (found,) = (bar for bar in row.document()["bars"] if "among" in bar)
        assert (found["peer"], found["met"]) == (None, None)


class StubField:
    """Knows which contenders are there."""

    def __init__(self, *names: str) -> None:
        self.versions = {Entrant(name, "shm"): "1.0" for name in names}
        self.absent: dict[str, str] = {}

    def has(self, entrant: Entrant) -> bool:
        return entrant in self.versions

    def drop(self, entrant: Entrant, reason: str) -> None:
        del self.versions[entrant]
        self.absent[str(entrant)] = reason


class StubCase(type(CASES["shm-latency"])):  # type: ignore[misc]
    """Shared-memory latency whose rounds come from a table and are written down."""

    modes = ("blocking", "prepared")
    sizes = (8,)
    peers = (Entrant("mpi4py", "shm"), Entrant("pyzmq", "shm"))

    def __init__(self) -> None:
        super().__init__()
        self.order: list[tuple[str, str]] = []
        self.failing: str | None = None

    def calibrate(self, field: object, cell: Cell) -> int:
        return 1

    def run(self, field: object, cell: Cell, count: int) -> Round:
        name = cell.entrant.name
        self.order.append((name, cell.mode))
        if name == self.failing:
            raise PairError("died", "gone")
        values = {"mpi4py": 2.0, "pyzmq": 40.0, "blocking": 0.6, "prepared": 0.6}
        return Round(values[cell.mode if name == "ofipy" else name], NONE)


def run_stub(case: StubCase, field: StubField, rounds: int) -> list[Row]:
    groups = select_rows(case, set(), set())
    return list(run_case(case, groups, field, rounds=rounds, step=lambda _: None))  # type: ignore[arg-type]


@pytest.fixture
def rows() -> list[Row]:
    return run_stub(StubCase(), StubField("ofipy", "mpi4py"), 3)


class TestRunner:
    def test_contenders_alternate_and_take_turns_at_being_first(self) -> None:
        case = StubCase()
        run_stub(case, StubField("ofipy", "mpi4py", "pyzmq"), 4)
        rounds = [case.order[index : index + 4] for index in range(0, 16, 4)]
        assert all(len(set(each)) == 4 for each in rounds)
        assert len({each[0] for each in rounds}) == 4

    def test_rows_carry_ratios_and_bars(self, rows: list[Row]) -> None:
        blocking, prepared = rows
        assert blocking.peers["mpi4py"].ratio == pytest.approx(0.3)
        assert [met for _, met in blocking.bars()] == [True]
        assert [met for _, met in prepared.bars()] == [False]
        assert set(blocking.peers) == {"mpi4py"}  # pyzmq is absent

    def test_a_failing_peer_leaves_and_the_run_goes_on(self) -> None:
        case, field = StubCase(), StubField("ofipy", "mpi4py", "pyzmq")
        case.failing = "pyzmq"
        rows = run_stub(case, field, 2)
        assert all(set(row.peers) == {"mpi4py"} for row in rows)
        assert "gone" in field.absent["pyzmq over shm"]

    def test_a_failure_of_ofipy_ends_the_run(self) -> None:
        case = StubCase()
        case.failing = "ofipy"
        with pytest.raises(PairError, match="gone"):
            run_stub(case, StubField("ofipy", "mpi4py"), 2)

    def test_a_bar_without_its_peer_is_not_judged(self) -> None:
        row = run_stub(StubCase(), StubField("ofipy", "pyzmq"), 1)[0]
        assert [met for _, met in row.bars()] == [None]

    def test_rows_can_be_selected(self) -> None:
        case = CASES["shm-latency"]
        assert select_rows(case, {"await"}, {8, 64}) == [[Line("await", 8)], [Line("await", 64)]]
        assert select_rows(case, {"domain"}, set()) == []


class TestReport:
    def test_the_document_has_the_promised_keys(self, rows: list[Row]) -> None:
        document = build_document(rows, machine={"cpu": "x"}, absent={"pyzmq": "not installed"})
        assert document["schema"] == 1
        row = document["rows"][0]
        assert {"case", "provider", "mode", "bytes", "metric", "ofipy", "peers"} <= set(row)
        assert row["ofipy"] == {"value": 0.6, "p99": None, "p999": None, "spread": 0.0}
        assert row["peers"]["mpi4py"] == {
            "value": 2.0, "p99": None, "p999": None, "spread": 0.0, "ratio": 0.3, "version": "1.0",
        }  # fmt: skip

    def test_match_depth_rows_have_depth_in_place_of_bytes(self) -> None:
        case = CASES["match-depth"]
        row = Row(case, Line("expected", 16), summary(0.1), {}).document()
        assert row["depth"] == 16
        assert "bytes" not in row

    @pytest.mark.parametrize("width", [150, 78])
    def test_the_table_shows_values_bars_and_absent_peers(self, rows: list[Row], width: int) -> None:
        text = io.StringIO()
        console = Console(file=text, width=width)
        print_tables(console, rows, machine={"cpu": "x"}, absent={"pyzmq": "not installed"})
        printed = text.getvalue()
        assert "≤ 0.4 × mpi4py met" in printed
        assert "≤ 0.25 × mpi4py missed" in printed
        assert "Absent: pyzmq: not installed" in printed
        assert "…" not in printed
        assert max(len(line) for line in printed.splitlines()) <= width


@pytest.mark.parametrize("width", [400, 90])
def test_a_table_that_does_not_fit_has_a_line_for_each_contender(width: int) -> None:
    tailed = PeerResult(Summary(value=2.0, spread=0.0, p99=7.5, p999=None), 0.3, None, "1.0")
    names = ("mpi4py", "libfabric", "multiprocessing", "pyzmq", "socket")
    row = Row(CASES["shm-latency"], Line("blocking", 8), summary(0.6), dict.fromkeys(names, tailed))
    text = io.StringIO()
    print_tables(Console(file=text, width=width), [row], machine={}, absent={})
    lines = text.getvalue().splitlines()
    assert sum("7.5" in line for line in lines) == (1 if width == 400 else len(names))
    assert "…" not in text.getvalue()
    assert any("multiprocessing" in line for line in lines)


ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["docs/how-to/benchmark.md", "fabtests/README.md"])
def test_the_tables_of_the_pages_list_every_case_and_its_modes(page: str) -> None:
    listed: dict[str, set[str]] = {}
    name = ""
    table = re.search(r"\n\| `?(?:--)?case`? \|.*?\n\n", (ROOT / page).read_text(), re.DOTALL)
    assert table
    column = 2 if "question" in table[0] else 1
    for line in table[0].strip().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0].strip("`") or name
        listed.setdefault(name, set()).update(
            mode for words in re.findall(r"`([^`]+)`", cells[column]) for mode in words.split()
        )
    assert listed.keys() == CASES.keys()
    for name, words in listed.items():
        modes = {line.mode for group in CASES[name].groups() for line in group}
        assert words <= modes | {"shm-latency", "-rewritten"}, name


def test_every_promised_case_and_mode_is_there() -> None:
    modes: dict[str, set[str]] = {
        name: {line.mode for group in case.groups() for line in group} for name, case in CASES.items()
    }
    assert modes["shm-latency"] == {"native", "blocking", "prepared", "await"}
    assert modes["shm-bandwidth"] == {
        *("array", "array-distinct", "array-rewritten"),
        *("domain", "domain-rewritten"),
    }
    assert modes["array-contended"] == {"array-contended", "array"}
    assert modes["rma-rate"] == {"batch"}
    assert modes["atomic-latency"] == {"native", "prepared", "blocking"}
    assert modes["shm-rma"] == {"target-idle", "target-reads", "native", "blocking", "prepared"}
    assert modes["match-depth"] == {"expected", "unexpected", "same-tag", "any-source", "masked"}
    assert modes["tcp-latency"] == {"native", "blocking", "prepared", "await"}
    assert modes["tcp-rate"] == {"batch"}
    assert modes["tcp-bandwidth"] == {"array", "request"}
    assert modes["tls-latency"] == modes["tcp-latency"]
    assert modes["tls-bandwidth"] == {"array"}
    assert modes["await"] == {"loop", "loop-100", "await", "await-100"}
    assert modes["threads"] == {"request", "shared"}
    assert modes["shm-rate"] == {"native", "request"}
    assert modes["fan-in"] == {"batch"}
    assert modes["executor"] == {"tasks", "argument-64m"}
    kinds = {"barrier", "allreduce", "reduce_scatter", "scan", "native-allreduce", "prepared-allreduce"}
    assert kinds | {"domain-broadcast", "kernel-sum"} <= modes["collectives"]
    assert modes["start"] == {"open", "import"}
    assert "gil" in modes


class SlowStartField:
    """A pair whose first chunk of all lost its core for a while; a round trip takes 1 µs."""

    def __init__(self) -> None:
        self._lost = 10e6

    def pair(self, entrant: Entrant) -> "SlowStartField":
        return self

    def call(self, name: str, mode: str, size: int, count: int, chunks: int, samples: int) -> list[object]:
        times = np.full(chunks, count * 1e3)
        times[0] += self._lost
        self._lost = 0.0
        return [(times, NONE)]


def test_a_disturbed_chunk_does_not_shorten_all_others() -> None:
    case = CASES["shm-latency"]
    count = case.calibrate(SlowStartField(), case.own_cell(Line("native", 8)))  # type: ignore[arg-type]
    assert count == 400


def test_making_a_hundred_tasks_is_a_small_part_of_a_chunk() -> None:
    case = CASES["await"]
    assert case.calibrate(SlowField(), case.own_cell(Line("loop-100", 8))) == 20  # type: ignore[arg-type]


class SlowField(SlowStartField):
    """A round trip of all tasks takes a millisecond, more than other cases' chunks."""

    def call(self, name: str, mode: str, size: int, count: int, chunks: int, samples: int) -> list[object]:
        return [(np.full(chunks, count * 1e6), NONE)]


class Demanding(ShmLatency):
    """What no provider has."""

    caps = ("collective",)


def test_a_case_that_cannot_run_says_why() -> None:
    assert what_lacks(ShmLatency()) is None
    assert what_lacks(CASES["match-depth"]) is None
    assert "no provider 'nowhere'" in (what_lacks(ShmLatency(provider="nowhere")) or "")
    assert what_lacks(Demanding()) == "provider shm: lacks collective"


def test_rewritten_rows_meet_peers_that_rewrite() -> None:
    case: Case = CASES["shm-bandwidth"]
    assert case.peer_cells(Line("domain-rewritten", 65536))["attach"].mode == "rewritten"
    assert case.peer_cells(Line("domain", 65536))["attach"].mode == "plain"
    # Only these read what came, and only these have many buffers.
    assert not case.peer_cells(Line("array-rewritten", 65536)).keys() & {"libfabric", "ucx"}
    assert case.peer_cells(Line("array-distinct", 65536)).keys() == {"attach", "mpi4py"}
    sizes = {line.size for group in case.groups() for line in group if line.mode == "array-distinct"}
    assert sizes == {65536, 1 << 20, 4 << 20}


@pytest.mark.parametrize(("size", "window"), [(65536, 64), (1 << 20, 64), (4 << 20, 16)])
def test_distinct_arrays_fit_memory(size: int, window: int) -> None:
    case = CASES["shm-bandwidth"]
    line = Line("array-distinct", size)
    for cell in (case.own_cell(line), *case.peer_cells(line).values()):
        assert case.window(cell) == window  # type: ignore[attr-defined]
    assert case.window(case.own_cell(Line("array", size))) == 64  # type: ignore[attr-defined]


class Counting(Contender):
    """Counts the messages that it moves, and writes down what it had moved when windows were timed."""

    distribution = "numpy"

    def offer(self) -> None: ...

    def meet(self, other: object) -> None: ...

    def close(self) -> None: ...

    def prepare(self, size: int, mode: str) -> None:
        super().prepare(size, mode)
        self.moved, self.asked = 0, []

    def stream(self, window: int) -> None:
        self.moved += window

    def windows(self, window: int, count: int) -> Times:
        self.asked.append((self.moved, self.reads))
        return super().windows(window, count)


@pytest.mark.parametrize(("window", "first"), [(1, 64), (16, 64), (64, 64), (256, 256)])
def test_windows_are_timed_after_as_many_messages_as_a_receiver_may_need(window: int, first: int) -> None:
    bench = Bench(True, contender=f"{__name__}:Counting")
    assert bench.bandwidth("plain", 8, window, 3, True).size == 3
    assert bench._contender.asked == [(0, True), (first, True)]  # type: ignore[attr-defined]


def test_every_round_has_new_memory() -> None:
    """Also in a mode that runs alone."""
    side = Ofipy(True, provider="shm")
    side.meet(side.offer())
    side.prepare(8, "array")
    before = side.outgoing, side.incoming
    side.prepare(8, "array")
    assert not {id(each) for each in before} & {id(side.outgoing), id(side.incoming)}
    side.close()


def test_what_ucx_prints() -> None:
    heading = "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"
    row = read_result("noise\n" + heading + "200000,0.020,0.038,0.038,202.13,202.13,26493409,26493409\n")
    assert (row[1], row[7]) == (0.020, 26493409)
    for printed in ("", heading, heading + "1,2\n", heading + "1,2,3,4,5,6,7,text\n"):
        with pytest.raises(ProgramError, match="printed no result"):
            read_result(printed)


def test_one_fetch_add_is_one_transfer() -> None:
    case = CASES["atomic-latency"]
    assert case.peer_cells(Line("blocking", 8)).keys() == {"write", "mpi4py", "ucx"}
    field = SlowStartField()
    assert case.run(field, case.own_cell(Line("blocking", 8)), 10).value == 1.0  # type: ignore[arg-type]


def test_a_row_of_several_ways_names_its_own() -> None:
    case = CASES["link-latency"]
    for way in ("shm", "tcp"):
        row = Row(case, Line("native", 8, way), summary(1.0), {})
        assert (row.document()["way"], list(case.peer_cells(row.line))) == (way, [way])
        assert [(bar.peer, met) for bar, met in row.bars()] == [(way, None)]
    cells = [case.own_cell(Line("native", 8, way)) for way in ("shm", "tcp")]
    assert cells[0] != cells[1]
    assert "way" not in Row(CASES["shm-latency"], Line("native", 8), summary(1.0), {}).document()


def test_the_rows_of_rma_have_each_their_metric() -> None:
    case = CASES["shm-rma"]
    assert Row(case, Line("target-idle", 1 << 20), summary(9.0), {}).document()["metric"] == "mb_per_sec"
    assert Row(case, Line("blocking", 8), summary(0.3), {}).document()["metric"] == "usec_per_transfer"
    assert case.own_cell(Line("blocking", 8)) != case.peer_cells(Line("blocking", 8))["tagged"]
    for group in case.groups():
        for line in group:
            assert find_bars("shm-rma", line)


def test_groups_of_more_ranks_than_two_are_printed_and_not_judged() -> None:
    line = Line("allreduce", 8, "shm")
    for ranks in (2, 5):
        case = Collectives(ranks=ranks)
        cells = [case.own_cell(line), *case.peer_cells(line).values()]
        assert [recipe_of(cell.entrant).count for cell in cells] == [ranks] * 4
        row = Row(case, line, summary(1.0), {}, case.sum_up_facts([]))
        assert row.document()["ranks"] == ranks
        assert bool(row.bars()) is (ranks == 2)
