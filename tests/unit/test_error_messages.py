# SPDX-License-Identifier: BSD-3-Clause
"""The page of every message says what the sources say, and the messages say what they should."""

import ast
import re

from tests import error_messages


def test_the_page_is_not_stale() -> None:
    written = error_messages.PAGE.read_text()
    assert written == error_messages.page(), "python -m tests.error_messages writes it anew"


def test_what_is_found_in_python() -> None:
    source = """
def refuse(code, name):
    if code:
        return f"{name} is {'odd' if code else 'even'} at {code:#x}, {len(name)} bytes", None
    raise InvalidArgument(f"{name!r} is wrong", remedy="mend it")
"""
    assert set(error_messages.made(ast.parse(source))) == {
        ("InvalidArgument", "‹name› is wrong", "mend it"),
        ("by its code", "‹name› is odd at ‹code›, … bytes", ""),
        ("by its code", "‹name› is even at ‹code›, … bytes", ""),
    }


def test_what_is_found_in_c() -> None:
    source = """
    snprintf(text, text_size, "the peer %s has %" PRIu64 " bytes, "
             "and \\"%.80s\\" says 100%%", name, size, other);
    snprintf(port, sizeof(port), "no message at all %u", 7);
    snprintf(text, size, "%s: %s", one, other);
    """
    assert list(error_messages.left(source)) == ['the peer … has … bytes, and "…" says 100%']


def test_no_message_says_a_thing_twice() -> None:
    page = error_messages.PAGE.read_text()
    table = re.findall(r"^\| (.*?) \| (.*?) ?\| [^|]* \|$", page, re.MULTILINE)
    rows = [(text, remedy) for text, remedies in table for remedy in remedies.split(" / ")]
    rows += [(line, "") for line in re.findall(r"^- (.*)$", page, re.MULTILINE)]
    assert len(rows) > 300
    assert {row: twice for row in rows if (twice := error_messages.repeated(*row))} == {}


def test_what_is_said_twice_is_found() -> None:
    said = error_messages.repeated
    assert said("the peer is gone: start it again", "close the endpoint, or start it again") == {
        "start it again"
    }
    assert said("nobody is there", "start the peer first, or check its address") == set()


def test_no_message_is_a_mere_word() -> None:
    for row in re.findall(r"^\| ([^|]+) \|", error_messages.PAGE.read_text(), re.MULTILINE):
        assert len(row.split()) > 1 or row == "message" or "=" in row, row
