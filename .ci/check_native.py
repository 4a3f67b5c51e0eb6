# SPDX-License-Identifier: BSD-3-Clause
"""Fail unless every native test program ran and passed all its tests; close with their sum."""

import re
import sys
import xml.etree.ElementTree as ElementTree

report, expected = sys.argv[1], int(sys.argv[2])
programs, passed = 0, 0
for case in ElementTree.parse(report).getroot().iter("testcase"):
    output = "".join(part.text or "" for name in ("system-out", "system-err") for part in case.iter(name))
    count = re.search(r"\[  PASSED  \] (\d+) test", output)
    if case.find("skipped") is not None or not count or "[  SKIPPED ]" in output:
        sys.exit(f"{case.get('name')} did not run all its tests")
    programs += 1
    passed += int(count[1])
if programs != expected:
    sys.exit(f"{programs} test programs ran, {expected} exist")
print(f"native: {programs} programs")
print(f"{passed} passed, 0 failed")
