# SPDX-License-Identifier: BSD-3-Clause
"""What the commands print: foreign text as it is, and no word cut off on a narrow terminal."""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console
from rich.table import Table

import ofipy
from ofipy.cli import atomics, info, pingpong
from ofipy.cli.support import data_console, status_console
from ofipy.cli.tables import WRAPPED_WIDTH, print_table
from ofipy.pingpong.plan import Measurement, PingPongPlan

FOREIGN = "[/red] not [bold]here[/], see :smile: [link=x] [/"


def words(text: str) -> set[str]:
    """What is neither a line of a table nor a space."""
    return {word for word in text.split() if not set(word) <= set("┏┓┗┛┃│━─┳┻┡┩╇╈└┘┴┬├┤┼╋")}


def measured(size: int) -> Measurement:
    return Measurement(size, iterations=100_000, seconds=12.3, p50_usec=1234.5, p99_usec=12345.6)


def unavailable(reason: str) -> ofipy.Explanation:
    return ofipy.Explanation("[/x]", "a [b]", "1.0", (), reason)


@pytest.mark.parametrize("width", [40, 160])
def test_reasons_are_plain_text(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    info.show_table(data_console(), [unavailable(FOREIGN)], None)
    printed = capsys.readouterr().out
    assert words(FOREIGN) <= words(printed)
    assert "[/x]" in printed


@pytest.mark.parametrize("console", [data_console, status_console])
def test_consoles_take_brackets_as_they_are(
    console: Callable[[], "object"], capsys: pytest.CaptureFixture[str]
) -> None:
    console().print(FOREIGN)  # type: ignore[attr-defined]
    printed = capsys.readouterr()
    assert FOREIGN in printed.out + printed.err


def test_progress_takes_brackets_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    row = measured(8)
    assert pingpong.collect([row], "[/x]") == [row]


@pytest.mark.parametrize("as_json", [False, True])
def test_pingpong_names_the_providers_that_it_leaves_out(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (shm, *_) = ofipy.getinfo(provider="shm")
    infos = [replace(shm, provider=name) for name in ("shm", "ofi:net", "ofi:udp;ofi_rxd", "ofi:net")]
    monkeypatch.setattr(ofipy, "getinfo", lambda **wanted: infos)
    monkeypatch.setattr(pingpong, "configured_providers", lambda provider: ())
    monkeypatch.setattr(pingpong, "measure_local", lambda *plan, **where: [measured(8)])
    pingpong.run_local(PingPongPlan(sizes=(8,), iterations=1, samples=1), provider=None, as_json=as_json)
    printed = capsys.readouterr()
    line = "Left out, since some take minutes: ofi:net, ofi:udp;ofi_rxd; one runs with -p 'ofi:net'"
    assert (line in printed.err.splitlines()) is not as_json
    assert "ofi:" not in printed.out


def show_providers() -> None:
    info.show_table(data_console(), ofipy.getinfo(provider=("shm", "tcp"), explain=True), None)


def show_parameters() -> None:
    info.show_parameters(as_json=False)


def show_hooks() -> None:
    info.show_hooks(as_json=False)


def show_atomics() -> None:
    atomics.show_atomics(provider="shm", caps=None, ep_type=None, as_json=False)


def show_measurements() -> None:
    rows = [measured(size) for size in (8, 1 << 20)]
    pingpong.show([{"provider": "shm"}], [rows], as_json=False, single=True)


@pytest.mark.parametrize(
    "show", [show_providers, show_parameters, show_hooks, show_atomics, show_measurements]
)
def test_no_word_is_cut_off(
    show: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    show()
    wide = words(capsys.readouterr().out)
    for width in (160, 120, 100, 80, 70, 60, 50, 40):
        monkeypatch.setenv("COLUMNS", str(width))
        show()
        printed = capsys.readouterr().out
        assert max(map(len, printed.splitlines())) <= width
        assert "…" not in printed.replace("ofi:…", "")
        if show is not show_atomics:  # on a narrow terminal types by name in place of crosses
            assert {word for word in wide - words(printed) if word.isalnum()} <= HEADINGS


def test_a_long_word_of_running_text_is_not_cut_off() -> None:
    word = "w" * (WRAPPED_WIDTH + 7)
    for width in range(20, 80):
        table = Table()
        table.add_column("name", no_wrap=True)
        table.add_column("help", min_width=WRAPPED_WIDTH)
        table.add_row("n" * 10, f"what {word} says, and more than that")
        printed = io.StringIO()
        print_table(Console(file=printed, width=width), table)
        assert "…" not in printed.getvalue(), width
        # Beside its heading the word is folded where the line is shorter than both.
        assert width < len("  help  ") + len(word) or word in printed.getvalue()


# Of a heading what explains it is left out where each row stands alone.
HEADINGS = {"hook", "parameter", "provider", "or", "why", "it", "is", "not", "available", "bytes"}


def test_version_lists_the_providers(capsys: pytest.CaptureFixture[str]) -> None:
    from ofipy.cli.version import show_version

    show_version(as_json=False)
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name in ("shm", "tcp", "ofi"):
        assert [name, "1.0", "(provider)"] in printed
