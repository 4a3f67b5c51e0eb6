# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor --html``: one file with every finding and a picture, which loads nothing."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ofipy.doctor.finding import State
from ofipy.doctor.page import write_page
from ofipy.doctor.picture import COLOURS, draw_ladder, worst_of
from ofipy.doctor.rules import find, judge
from tests.command import invoke
from tests.host.healthy import PORT, healthy

SVG = "{http://www.w3.org/2000/svg}"


class Elements(HTMLParser):
    """What a page consists of; every element that is opened is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows = 0
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs
        self.rows += tag == "tr"
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_of_a_faulty_host(tmp_path: Path) -> None:
    machine = healthy()
    machine.files[f"{PORT}/rate"] = "50 Gb/sec (1X HDR)\n"
    root, page = machine.pack(tmp_path / "machine.tar.gz"), tmp_path / "page.html"
    ran = invoke("doctor", "--root", str(root), "--html", str(page))
    assert ran.exit_code == 1
    text = page.read_text()
    elements = Elements(text)
    assert elements.rows > 30
    assert not [value for name, value in elements.attributes if name in ("src", "href") and value]
    assert "1 of " in text
    assert text.index("link.width") < text.index("In order, or not judged")
    assert "ofipy doctor: node17" in text
    if shutil.which("dot") is not None:
        drawing = re.search(r"<h2>Topology</h2>\s*(<svg.*?</svg>)", text, re.DOTALL)
        assert drawing is not None
        (node,) = [
            each
            for each in ElementTree.fromstring(drawing[1]).iter(f"{SVG}g")
            if each.findtext(f"{SVG}title") == "node17/mlx5_0/1"
        ]
        assert [each.get("stroke") for each in node if each.get("stroke")] == ["#d62728"]


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    root = healthy().write(tmp_path / "machine")
    words = ["doctor", "--root", str(root), "--html", str(tmp_path / "no" / "page.html")]
    ran = invoke(*words)
    assert ran.exit_code == 1
    assert "No such file" in ran.stderr


def test_what_a_peer_says_is_text() -> None:
    finding = find("net.port", State.FAILED, "<script>alert(1)</script>", place='to "x"')
    text = write_page([finding], host="a<b", peer="c&d")
    assert "<script>" not in text
    assert "a&lt;b and c&amp;d" in text
    Elements(text)


def test_the_ladder_shows_shares_and_the_worst_of_each_step() -> None:
    findings = [
        judge("ladder.raw", 0.6, "raw"),
        judge("port.discard", 0, "none", place="mlx5_0/1"),
        find("link.state", State.FAILED, "DOWN", place="mlx5_0/1"),
        find("link.state", State.OK, "ACTIVE", place="mlx5_1/1"),
    ]
    picture = ElementTree.fromstring(draw_ladder(findings))
    circles = [each.get("fill") for each in picture.iter(f"{SVG}circle")]
    assert circles == [COLOURS[State.FAILED], COLOURS[State.WARNING], COLOURS[State.OK]]
    words = [each.text for each in picture.iter(f"{SVG}text")]
    assert "60% of the rate" in words
    assert "mlx5_0/1 DOWN" in words
    bar = [each for each in picture.iter(f"{SVG}rect") if each.get("fill") == COLOURS[State.WARNING]]
    assert [each.get("width") for each in bar] == ["108"]


@pytest.mark.parametrize(
    ("states", "worst"),
    [
        ([State.OK, State.WARNING], State.WARNING),
        ([State.WARNING, State.FAILED], State.FAILED),
        ([State.ABSENT, State.OK], State.OK),
        ([], State.ABSENT),
    ],
)
def test_the_worst(states: list[State], worst: State) -> None:
    assert worst_of([find("link.state", state, "") for state in states]) is worst
