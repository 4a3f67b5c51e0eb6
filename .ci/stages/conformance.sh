# SPDX-License-Identifier: BSD-3-Clause
# The conformance suite over everything but what the README's own command covers. Sourced by .ci/run.

# Why tests of one provider are left out over another.
of_other_providers=(--allow 'its peers prove no key' --allow 'the transport does not tell that'
    --allow 'libfabric keeps messages')

fake_provider() {
    pytest tests/conformance tests/unit/test_documentation.py --provider fake --junit-xml="$work/fake.xml"
    python3 .ci/check_junit.py --least 100 "${of_other_providers[@]}" "$work/fake.xml"
}

encrypted_tcp() { # a test fails if a peer of it was not encrypted (tests/conformance/protection.py)
    local tests=(tests/conformance/test_{messages,rma,connection,large,asyncio,linger,gone_peers,security}.py)
    [ "$profile" != full ] || tests=(tests/conformance)
    ofipy key new "$work/encrypted.key"
    OFIPY_AUTH_KEY_FILE=$work/encrypted.key OFIPY_ENCRYPTION=required \
        pytest "${tests[@]}" --provider tcp --junit-xml="$work/encrypted.xml"
    python3 .ci/check_junit.py --name "tcp, encrypted" --least 130 "$work/encrypted.xml"
}

over_link() { # neighbours; then hosts that share no memory, where a pair that does fails the run
    pytest tests/conformance --provider link --junit-xml="$work/link.xml"
    python3 .ci/check_junit.py --name "link, neighbours" --least 740 "$work/link.xml"
    pytest tests/conformance --provider link-remote --junit-xml="$work/link-remote.xml"
    python3 .ci/check_junit.py --name "link, between hosts" --least 700 "$work/link-remote.xml"
}

packets() { # reliable endpoints out of a packet channel, over one within the process
    pip install -qq --no-build-isolation ./tests/rdm_fake_provider
    pytest tests/conformance --provider rdmfake --junit-xml="$work/packets.xml"
    python3 .ci/check_junit.py --name "packet channels" --least 2000 "${of_other_providers[@]}" "$work/packets.xml"
    # Beside shared memory under one endpoint: its devices make keys of their own.
    pytest tests/conformance/test_{link,rma,regions,atomics,remote_model}.py --provider link:shm+rdmfake \
        --provider link:shm+rdmfake-remote --junit-xml="$work/device_keys.xml"
    python3 .ci/check_junit.py --name "link over devices" --least 300 "$work/device_keys.xml"
}

sanitized_conformance() { # over a build with sanitizers, where memory that is used too late or too far is seen
    local least=2500 tests=(tests/conformance)
    [ "$profile" = full ] || least=300 tests=(tests/conformance/test_{collectives,unreceived,link,rma}.py)
    python3 -m tests.asan -m pytest "${tests[@]}" -n 2 --provider shm --provider tcp --provider link \
        --junit-xml="$work/sanitized.xml"
    python3 .ci/check_junit.py --name "conformance, sanitizers" --least "$least" --allow 'its peers prove no key' \
        --allow 'does not tell that nobody is there' "$work/sanitized.xml"
}

hooked() { # the conformance suite while every hook looks on, two of them of one kind
    OFIPY_HOOKS='debug;trace;profile:table=no;fault;fault' pytest tests/conformance --provider shm --provider tcp \
        --junit-xml="$work/hooked.xml"
    python3 .ci/check_junit.py --name "conformance with hooks" --least 2000 --allow 'its peers prove no key' \
        "$work/hooked.xml"
}

large() { # one after the other, with a report of what the machine has too little memory for
    # 5: all of them are left out, since there is too little memory; the report says so.
    pytest tests/conformance/test_large.py --large -n 0 || [ $? -eq 5 ]
}

bundled_libfabric() { # the one in the wheel mpich, whatever the machine has
    python3 -c 'from importlib.metadata import files
print(next(each.locate().resolve() for each in files("mpich") if each.name == "libfabric.so.1"))'
}

bridge() { # LIBRARY PROVIDER LEAST: the conformance suite over a provider of a libfabric
    OFIPY_LIBFABRIC=$1 pytest tests/conformance --provider "$2" --junit-xml="$work/bridge.xml"
    python3 .ci/check_junit.py --name "$2" --least "$3" "${of_other_providers[@]}" "$work/bridge.xml"
}

bridge_tcp() { bridge "$(bundled_libfabric)" ofi:tcp 200; }

bridge_shm() { bridge "$(bundled_libfabric)" ofi:shm 200; }

bridge_layered() { bridge "$(bundled_libfabric)" 'ofi:tcp;ofi_rxm' 250; }

bridge_datagrams() { # of ofi_rxd short: what it does otherwise is not in the table of deviations
    bridge "$(bundled_libfabric)" ofi:udp 18
    OFIPY_LIBFABRIC=$(bundled_libfabric) pytest tests/conformance/test_messages.py tests/conformance/test_requests.py \
        --provider 'ofi:udp;ofi_rxd' -k 'not (match or several_endpoints or failure_is_raised or wait_all_raises or wait_all_that_times_out)' \
        --junit-xml="$work/bridge.xml"
    python3 .ci/check_junit.py --name "ofi:udp;ofi_rxd" --least 25 "$work/bridge.xml"
}

bridge_debian() { # short runs over an old libfabric, whose provider of reliable datagrams over TCP is called net
    apt_install libfabric1
    local library
    # Awk reads all of it: where the reader of a pipe ends first, SIGPIPE ends the writer, and pipefail the stage.
    library=$(ldconfig -p | awk '/libfabric.so.1 / && !found { found = $NF } END { print found }')
    # What is left out needs match-complete, the names of unknown senders, or more than the few messages that net keeps.
    OFIPY_LIBFABRIC=$library pytest tests/conformance/test_messages.py tests/conformance/test_requests.py \
        --provider ofi:net -k 'not (match or unknown_sender or order_of_one_sender or wait_all_raises or in_reverse)' \
        --junit-xml="$work/bridge.xml"
    python3 .ci/check_junit.py --name "ofi:net of Debian" --least 25 "$work/bridge.xml"
    # Connected endpoints are its tcp's.
    OFIPY_LIBFABRIC=$library pytest tests/conformance/test_connection*.py tests/conformance/test_untagged.py --provider ofi:tcp \
        --junit-xml="$work/bridge.xml"
    python3 .ci/check_junit.py --name "ofi:tcp of Debian, connected" --least 25 "$work/bridge.xml"
    OFIPY_LIBFABRIC=$library pytest tests/interop/test_connected.py --junit-xml="$work/bridge.xml"
    python3 .ci/check_junit.py --name "tcp with tcp of Debian, connected" --least 14 "$work/bridge.xml"
    # And with our tcp: besides, remote CQ data without a source, atomics that its wire lacks, and wrong keys.
    OFIPY_LIBFABRIC=$library pytest tests/conformance/test_messages.py tests/conformance/test_orders.py \
        tests/conformance/test_rma.py --provider tcp,ofi:net --provider ofi:net,tcp \
        -k 'not (match or order_of_one_sender or atomic or remote_cq_data or lies or in_reverse)' --junit-xml="$work/bridge.xml"
    python3 .ci/check_junit.py --name "tcp with net of Debian, both roles" --least 50 "$work/bridge.xml"
}
