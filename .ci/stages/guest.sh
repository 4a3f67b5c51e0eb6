# SPDX-License-Identifier: BSD-3-Clause
# What needs another kernel: a virtual machine, and in it Soft-RoCE. Sourced by .ci/run.

guest_boots() {
    local missing=()
    command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86)
    command -v busybox >/dev/null || missing+=(busybox-static)
    command -v kmod >/dev/null || missing+=(kmod)
    command -v tc >/dev/null || missing+=(iproute2)
    command -v iptables-legacy >/dev/null || missing+=(iptables)
    # Without privileges neither works, and what is there may do.
    apt_update || true
    [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}" || true
    in_guest -- true
}

in_guest() { # ARGUMENTS: of tests.guest; an emulated machine that ended by itself (125) is switched on once more, and said so
    local status=0
    python3 -m tests.guest "$@" || status=$?
    [ "$status" -eq 125 ] || return "$status"
    echo "the guest ended by itself: once more"
    python3 -m tests.guest "$@"
}

rdma_modules=crc32_generic,rdma_rxe,rdma_ucm,dummy

guest() { # tests that need another kernel, in a virtual machine, all in one boot: tc netem, and some over Soft-RoCE
    if ! guest_boots; then
        [ "${CI:-}" != true ] || return 1
        echo "skipped: this machine cannot have a guest"
        return 0
    fi
    [ -d /etc/libibverbs.d ] || apt_install ibverbs-providers
    compgen -G '/usr/lib*/**/librdmacm.so.1' >/dev/null || apt_install librdmacm1
    command -v fi_pingpong >/dev/null || apt_install libfabric-bin
    # The stages behind this one take this folder as the sign that this machine can have a guest.
    mkdir "$work/guest"
    pytest tests/guest --junit-xml="$work/guest.xml"
    python3 .ci/check_junit.py --least 12 "$work/guest.xml"
    cat >"$work/guest/tests" <<COMMANDS
set -e
python3 -P -m pytest tests/network/test_netem.py -p no:cacheprovider --junit-xml="$work/guest/netem.xml" --durations=5
[ "$profile" != quick ] || tests/verbs/soft-roce python3 -P -m pytest tests/verbs/test_datagram.py tests/verbs/test_connected.py \
    tests/verbs/test_keys.py \
    tests/verbs/test_pingpong.py tests/conformance/test_untagged.py tests/conformance/test_datagrams.py --provider verbs \
    -k 'not told_of_the_device' -p no:cacheprovider --junit-xml="$work/guest/verbs.xml" --durations=5
COMMANDS
    in_guest --timeout 1200 --modules "$rdma_modules" --share "$work/guest" -- sh "$work/guest/tests"
    python3 .ci/check_junit.py --least 7 "$work/guest/netem.xml"
    [ "$profile" != quick ] || python3 .ci/check_junit.py --name "Soft-RoCE" --least 55 "$work/guest/verbs.xml"
}

rdma_guest() { # NAME SECONDS COMMAND…: pytest over Soft-RoCE
    local name=$1 seconds=$2
    shift 2
    # Emulated, what a stress does a million times takes hours.
    unset OFIPY_STRESS OFIPY_STORM_SECONDS OFIPY_RACES
    if [ ! -d "$work/guest" ]; then
        echo "skipped: this machine cannot have a guest"
        return 0
    fi
    in_guest --timeout "$seconds" --memory 3000 --modules "$rdma_modules" --share "$work/guest" -- \
        tests/verbs/soft-roce "$@" -n 0 -p no:cacheprovider --junit-xml="$work/guest/$name.xml" --durations=5
}

guest_rdma() { # behind `guest`; emulated, a test takes seconds: the suite in several boots
    local files=(tests/conformance/test_*.py) at status=0
    # Programs of others that tests/verbs runs beside ours.
    [ ! -d "$work/guest" ] || {
        command -v ib_send_lat >/dev/null || apt_install perftest
        command -v ucmatose >/dev/null || apt_install rdmacm-utils
    }
    # A boot that fails does not keep the later ones from being made.
    rdma_guest gone 400 python3 -P -m pytest tests/verbs/test_gone_device.py || status=1
    rdma_guest rdma 1500 python3 -P -m pytest tests/verbs || status=1
    for ((at = 0; at < ${#files[@]}; at += 8)); do
        rdma_guest "suite-$at" 1800 python3 -P -m pytest "${files[@]:at:8}" --provider verbs || status=1
    done
    [ -d "$work/guest" ] || return 0
    [ "$status" -eq 0 ] || return 1
    python3 .ci/check_junit.py --least 6 "$work/guest/gone.xml"
    python3 .ci/check_junit.py --least 71 --allow OFIPY_TWO_GUESTS --allow 'has used the device' \
        --allow 'libfabric 2' "$work/guest/rdma.xml"
    for ((at = 0; at < ${#files[@]}; at += 8)); do
        python3 .ci/check_junit.py --least 1 "$work/guest/suite-$at.xml"
    done
}

guest_rdma_sanitized() {
    python3 -m tests.asan
    rdma_guest sanitized 900 python3 -m tests.asan --built -m pytest tests/verbs/test_datagram.py tests/verbs/test_connected.py \
    tests/verbs/test_keys.py \
        tests/verbs/test_events.py tests/conformance/test_untagged.py tests/conformance/test_datagrams.py --provider verbs
    [ ! -d "$work/guest" ] || python3 .ci/check_junit.py --least 40 "$work/guest/sanitized.xml"
}

guest_fabtests() { # the programs as users run them; emulated, those of the standard set take minutes each
    local report=$work/guest/fabtests.xml
    if [ ! -d "$work/guest" ]; then
        echo "skipped: this machine cannot have a guest"
        return 0
    fi
    # A window of the longest messages is a GiB on each side.
    in_guest --timeout 3600 --memory 5000 --modules "$rdma_modules" --share "$work/guest" -- \
        tests/verbs/soft-roce sh -c "cd / && exec python3 -P -m fabtests run quick -p verbs -T 300 --junit '$report'"
    python3 .ci/check_junit.py --name "fabtests quick over verbs" --least 94 \
        --allow '^endpoint type ' --allow '^capability ' "$report"
}

two_hosts() { # each a guest
    if [ ! -d "$work/guest" ]; then
        echo "skipped: this machine cannot have a guest"
        return 0
    fi
    # Jobs log in from one guest to the other.
    [ -x /usr/sbin/sshd ] || apt_install openssh-server
    command -v ssh >/dev/null || apt_install openssh-client
    # Half of the lost peers die in the middle of a message: more than there are receive buffers, with the reserve. Two guests at a
    # time, not one pair for each processor: their deadlines are for that.
    OFIPY_TWO_GUESTS=1 OFIPY_LOST_PEERS=10000 OFIPY_RUNS=20 pytest tests/verbs/test_two_hosts.py \
        tests/verbs/test_two_hosts_jobs.py -n 0 \
        --junit-xml="$work/hosts.xml" --durations=0
    python3 .ci/check_junit.py --name "two hosts" --least 6 "$work/hosts.xml"
}
