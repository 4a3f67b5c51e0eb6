# SPDX-License-Identifier: BSD-3-Clause
"""``ofipy doctor``: what on this host helps or hinders, a line each."""

from collections.abc import Sequence
from typing import Any

from ofipy.cli.support import CommandError, data_console, print_json
from ofipy.doctor.document import describe
from ofipy.doctor.examine import examine_process, examine_tree
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.text import print_findings
from ofipy.host.tree import Tree

__all__ = ["report", "show_checks"]


def show_checks(*, as_json: bool) -> None:
    """Print every finding of this host.

    Parameters
    ----------
    as_json : bool
        One document in place of a table.

    Raises
    ------
    CommandError
        After printing, when a rule has failed. Warnings are no failure.
    """
    tree = Tree()
    report([*examine_process(tree), *examine_tree(tree)], as_json=as_json)


def report(findings: Sequence[Finding], *, as_json: bool, is_strict: bool = False, **more: Any) -> None:
    """Print findings, and end as they demand.

    Parameters
    ----------
    findings : sequence of Finding
        What was found.
    as_json : bool
        One document in place of a table.
    is_strict : bool
        Whether a warning is a failure, too.
    **more
        What else belongs into the document.

    Raises
    ------
    CommandError
        After printing, when a rule has failed.
    """
    if as_json:
        print_json(describe(findings, **more))
    else:
        print_findings(data_console(), findings)
    wrong = (State.FAILED, State.WARNING) if is_strict else (State.FAILED,)
    failed = dict.fromkeys(
        f"{each.rule.name} {each.place}".strip() for each in findings if each.state in wrong
    )
    if failed:
        raise CommandError(f"to be mended: {', '.join(failed)}")
