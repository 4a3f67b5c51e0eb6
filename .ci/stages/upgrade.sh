# SPDX-License-Identifier: BSD-3-Clause
# This release beside others: the last one, and one that speaks no version of this one. Sourced by .ci/run.

upgrade() { # the last one; in the full profile also a later one that speaks no version of this one
    local least=10
    [ "$profile" != full ] || least=22
    pytest tests/upgrade/test_upgrade.py -n 0 --junit-xml="$work/upgrade.xml" --durations=5
    python3 .ci/check_junit.py --name upgrade --least "$least" --allow 'in the full profile alone' "$work/upgrade.xml"
}

guest_upgrade() { # behind `guest`: over verbs, with and without a key. The releases are built outside, where it is quicker
    local last later
    [ -d "$work/guest" ] || { echo "skipped: this machine cannot have a guest"; return 0; }
    last=$(python3 -m tests.upgrade.releases last)
    later=$(python3 -m tests.upgrade.releases later)
    OFIPY_LAST_PYTHON=$last OFIPY_LATER_PYTHON=$later OFIPY_UPGRADE_WIRES='verbs,verbs with a key' \
        rdma_guest upgrade 1200 python3 -P -m pytest tests/upgrade/test_upgrade.py -k 'not a_job'
    python3 .ci/check_junit.py --name "upgrade over verbs" --least 8 "$work/guest/upgrade.xml"
}
