# SPDX-License-Identifier: BSD-3-Clause
# This release beside others. Sourced by .ci/run.

upgrade() { # the last one; in the full profile also a later one that speaks no version of this one
    local least=10
    [ "$profile" != full ] || least=20
    pytest tests/upgrade/test_upgrade.py -n 0 --junit-xml="$work/upgrade.xml" --durations=5
    python3 .ci/check_junit.py --name upgrade --least "$least" --allow 'in the full profile alone' "$work/upgrade.xml"
}
