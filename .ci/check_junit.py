# SPDX-License-Identifier: BSD-3-Clause
"""Fail on a suite that ran nothing, and on a test skipped for a reason that nobody allowed; print the counts."""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--allow", action="append", default=[], metavar="REGEX", help="a reason to skip")
parser.add_argument("--least", type=int, default=1, metavar="NUMBER", help="tests that must have run")
parser.add_argument("--name", help="of the suite, for the line of counts")
parser.add_argument("report")
arguments = parser.parse_args()

ran, expected, faults = 0, 0, []
for case in ElementTree.parse(arguments.report).getroot().iter("testcase"):
    skipped = case.find("skipped")
    if skipped is None:
        ran += 1
        continue
    if skipped.get("type") == "pytest.xfail":
        expected += 1
        continue
    # pytest puts the reason into an attribute, and the line that asked for the skip before the reason in the text.
    reason = skipped.get("message") or skipped.text or ""
    if not any(re.search(allowed, reason) for allowed in arguments.allow):
        faults.append(f"{case.get('classname')}.{case.get('name')} was skipped: {reason!r}")
if ran < arguments.least:
    faults.append(f"{ran} tests ran, at least {arguments.least} are meant to")
if arguments.name:
    print(f"{arguments.name}: {ran} passed, {expected} deviate as expected")
sys.exit("\n".join(faults) or None)
