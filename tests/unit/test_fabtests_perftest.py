# SPDX-License-Identifier: BSD-3-Clause
"""Running perftest's programs, and the cases of verbs: a stand-in with their command line takes their place."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from fabtests.compare.bars import find_bars
from fabtests.compare.case import Cell, Line
from fabtests.compare.cases import CASES
from fabtests.compare.entrants import LIBFABRIC, OFIPY, PERFTEST, Absent, Entrant, recipe_of
from fabtests.compare.field import Field
from fabtests.compare.perftest import LATENCY, WINDOWS, Perftest, read_bandwidth, read_latencies
from fabtests.compare.programs import ProgramError
from ofipy.pingpong.pipe import pick_cores

STAND_IN = """#!{python}
import os, socket, sys

name = os.path.basename(sys.argv[0])
if "--version" in sys.argv:
    print("Version: 6.06")
    sys.exit()
options = dict(each.partition("=")[::2] for each in sys.argv[1:])
assert (options["--ib-dev"], options["--ib-port"]) == ("rxe0", "2"), sys.argv
size, count = int(options["--size"]), int(options["--iters"])
address = "127.0.0.1", int(options["--port"])
if sys.argv[-1] != "127.0.0.1":
    assert min(os.sched_getaffinity(0)) == {server}
    with socket.create_server(address) as listener:
        listener.accept()[0].close()
    sys.exit()
with socket.create_connection(address) as connection:
    connection.recv(1)
if size == 14 or (size == 15 and not os.path.exists(mark := sys.argv[0] + ".before")):
    open(sys.argv[0] + ".before", "w").close()
    print("#, usec\\n1, inf\\n2, inf\\n-----")
    sys.exit()
if size == 13:
    sys.exit("Couldn't post send")
if name.endswith("_lat"):
    assert "--report-unsorted" in sys.argv
    print(" #bytes #iterations    t_min[usec]\\n#, usec")
    for number in range(1, count):
        print(f"{{number}}, {{number + 0.5:g}}")
    print("-----\\n 8       20          33.33          135.64       43.47\\n-----")
else:
    assert {{"--tx-depth", "--cq-mod", "--noPeak"}} < set(options)
    print(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]")
    print(f" {{size}}      {{count}}              0.00               100.00\\t\\t   0.001373\\n-----")
"""
PROGRAMS = [*LATENCY.values(), *WINDOWS.values()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in PROGRAMS:
        file = tmp_path / name
        file.write_text(STAND_IN.format(python=sys.executable, server=pick_cores()[1]))
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


@pytest.fixture
def perftest(folder: Path) -> Perftest:
    return Perftest.found("rxe0:2-ipv6", cores=pick_cores())


@pytest.mark.parametrize(("mode", "halves"), [("native-send", 2), ("native-write", 2), ("native-read", 1)])
def test_single_times(perftest: Perftest, mode: str, halves: int) -> None:
    (times,) = perftest.call("singles", mode, 8, 6)
    assert times.tolist() == [halves * each for each in (1500, 2500, 3500, 4500, 5500)]
    case = CASES["verbs-latency"]
    with Field(cores=pick_cores()) as field:
        field._pairs[PERFTEST] = perftest
        found = case.run(field, Cell(PERFTEST, mode, 8), 6)
    assert (found.value, len(found.samples)) == (3.5, 5)


@pytest.mark.parametrize("mode", ["native-write", "native-read"])
def test_bandwidth(perftest: Perftest, mode: str) -> None:
    case = CASES["verbs-bandwidth"]
    with Field(cores=pick_cores()) as field:
        field._pairs[PERFTEST] = perftest
        assert case.run(field, Cell(PERFTEST, mode, 65536), 3).value == pytest.approx(104.8576)


def test_a_failing_program_is_an_error_with_its_words(perftest: Perftest) -> None:
    with pytest.raises(ProgramError, match="Couldn't post send"):
        perftest.call("singles", "native-send", 13, 6)


def test_a_clock_that_was_not_found_is_looked_for_again(perftest: Perftest) -> None:
    assert perftest.call("singles", "native-read", 15, 6)[0][0] == 1500
    with pytest.raises(ProgramError, match="no latencies"):
        perftest.call("singles", "native-send", 14, 6)


def test_it_tells_its_version(perftest: Perftest) -> None:
    assert perftest.call("version") == ["6.06"]


def test_a_missing_program_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "ib_read_bw").unlink()
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(Absent, match=r"^not on PATH: ib_read_bw; Debian's package perftest has them$"):
        Perftest.found("rxe0", cores=(0, 1))


@pytest.mark.parametrize("output", ["", "#, usec\n", "1, 2.5\n", "#, usec\n1, 1.2.3\n", "#, usec\nno, 5\n"])
def test_other_words_than_latencies(output: str) -> None:
    with pytest.raises(ProgramError, match=r"no latencies|no number"):
        read_latencies(output)


@pytest.mark.parametrize(
    "output",
    ["", "BW average[MB/sec]\n", "BW average[MB/sec]\n 8 20 0.00 0.00 0.1\n", " 8 20 0.00 7.00 0.1\n"],
)
def test_other_words_than_a_bandwidth(output: str) -> None:
    with pytest.raises(ProgramError, match="no bandwidth"):
        read_bandwidth(output)


def test_every_row_has_its_peers() -> None:
    latency, bandwidth = CASES["verbs-latency"], CASES["verbs-bandwidth"]
    modes = {mode: set(latency.peer_cells(Line(mode, 8))) for mode in latency.modes}
    assert modes == {
        "native-send": {"perftest", "libfabric"},
        "native-write": {"perftest"},
        "native-read": {"perftest"},
        **{mode: {"libfabric"} for mode in ("native", "prepared", "blocking")},
    }
    assert set(bandwidth.modes) == {"native-write", "native-read"}
    assert all(
        set(bandwidth.peer_cells(line)) == {"perftest"} for group in bandwidth.groups() for line in group
    )
    assert [bar.limit for bar in find_bars("verbs-latency", Line("native-send", 8))] == [1.1]


def test_what_is_asked_of_which_endpoint() -> None:
    case = CASES["verbs-latency"]
    connected, alone = (case.own_cell(Line(mode, 8)).entrant for mode in ("native-send", "native"))
    options = [recipe_of(each).options for each in (connected, alone)]
    assert [(each["connected"], each["progress"]) for each in options] == [(True, "manual"), (False, "auto")]
    peers = [case.peer_cells(Line(mode, 8))[LIBFABRIC] for mode in ("native-send", "prepared")]
    assert [cell.mode for cell in peers] == ["native-send", "native"]
    assert [recipe_of(cell.entrant).options["connected"] for cell in peers] == [True, False]
    assert str(Entrant(OFIPY, "verbs", connected=True)) == "ofipy over verbs, connected"


@pytest.mark.parametrize("mode", ["native-send", "native-write", "native-read"])
def test_the_loops_run_over_any_connected_endpoint(mode: str) -> None:
    """The fake provider of a device: tcp has endpoints of type ``msg`` too."""
    entrant = Entrant(OFIPY, "tcp", connected=True)
    with Field(cores=pick_cores()) as field:
        assert field.has(entrant), field.absent
        pair = field.pair(entrant)
        times = pair.call("singles", mode, 8, 20)[0]
        assert times.shape == (20,)
        assert (times > 0).all()
        if mode != "native-send":
            windows = pair.call("bandwidth", mode, 65536, 8, 3, False)[0]
            assert (np.asarray(windows) > 0).all()
