# SPDX-License-Identifier: BSD-3-Clause
"""Outcomes as the XML that continuous integration reads."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement

from fabtests.suite.outcome import Outcome

__all__ = ["write_junit"]


def write_junit(path: Path, name: str, outcomes: Sequence[Outcome]) -> None:
    """Write one test suite of that name."""
    suite = Element(
        "testsuite",
        name=name,
        tests=str(len(outcomes)),
        failures=str(sum(each.result == "failed" for each in outcomes)),
        skipped=str(sum(each.result == "not_run" for each in outcomes)),
        errors="0",
        time=f"{sum(each.seconds for each in outcomes):.3f}",
    )
    for each in outcomes:
        case = SubElement(suite, "testcase", classname=name, name=each.entry, time=f"{each.seconds:.3f}")
        if each.result == "failed":
            SubElement(case, "failure", message=each.reason).text = _printable(each.output)
        elif each.result == "not_run":
            SubElement(case, "skipped", message=each.reason)
    ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    return "".join(each for each in text if each.isprintable() or each in "\n\t")
