# SPDX-License-Identifier: BSD-3-Clause
"""The command lines of each set: what libfabric's suite runs under the same names, and what ofipy has besides."""

__all__ = ["SETS", "entries_of"]


def _vary(line: str, *variants: str) -> list[str]:
    return [" ".join(filter(None, (line, each))) for each in variants]


_PLAIN_DELIVERY = ("", "-U")
_FOUR = ("", "-U", "-v", "-v -U")
_OPERATIONS = [f"-o {each}" for each in ("write", "read", "writedata")]

UNIT = [
    "av_test", "cntr_test", "cq_test", "dom_test", "eq_test", "getinfo_test", "mr_test", "setopt_test",
    "sighandler_test", "check_hmem", "mr_cache_evict",
]  # fmt: skip

FUNCTIONAL = [
    "av_xfer",
    "cm_data",
    *(
        f"cq_data -e {kind} -o {carrier}"
        for carrier in ("senddata", "writedata")
        for kind in ("msg", "rdm", "dgram")
    ),
    "dgram",
    "msg",
    "msg_epoll",
    "msg_sockets",
    *_vary("rdm", *_PLAIN_DELIVERY),
    "rdm_rma_event",
    "rdm_rma_trigger",
    *(
        entry
        for kind in ("rdm", "msg")
        for entry in _vary(f"shared_ctx -e {kind}", "", "--no-tx-shared-ctx", "--no-rx-shared-ctx")
    ),
    "rdm_tagged_peek",
    "scalable_ep",
    "rdm_shared_av",
    "mcast",
    "loopback",
    *(f"multi_mr -e {kind} -V" for kind in ("msg", "rdm")),
    *(
        entry
        for kind in ("msg", "rdm")
        for entry in _vary(
            f"multi_ep -e {kind} -v",
            "-A",
            "-Q",
            "-A -Q",
            "--threading completion",
            "-A -Q --threading completion",
        )
    ),
    "recv_cancel -V",
    *(f"unexpected_msg -e {kind} -I 10 -v" for kind in ("msg", "rdm")),
    *(f"inject_test{how} -A {flag} -v" for flag in ("inject", "inj_complete") for how in ("", " -N")),
    *_vary("flood -v -T 0.2", *_PLAIN_DELIVERY),
    "flood -e msg -v -T 0.2",
    *_vary("rdm_multi_client -C 10 -I 5", *_PLAIN_DELIVERY),
    "rdm_multi_domain",
    "rdm_deferred_wq",
    *_vary("resmgmt_test", "", "-m 1000 -d"),
    "unmap_mem -I 5",
]

SHORT = [
    *_vary("msg_pingpong -I 5", "", "-v"),
    *_vary("msg_bw -I 5", "", "-v"),
    *(f"rma_bw -e msg {operation} -I 5" for operation in _OPERATIONS),
    *(
        entry
        for operation in _OPERATIONS
        for entry in _vary(f"rma_bw -e rdm {operation} -I 5", *_PLAIN_DELIVERY)
    ),
    *(f"rma_bw -e rdm {operation} -I 5 -v" for operation in _OPERATIONS),
    *_vary("rma_pingpong -I 5", "-o write", "-o writedata", "-o writedata -v"),
    *_vary("rma_tx_completion -I 5", "-o write", "-o writedata"),
    *_vary("rdm_atomic -I 2 -o all", *_PLAIN_DELIVERY),
    "rdm_cntr_pingpong -I 5",
    *(f"multi_recv -e {kind} -I 5" for kind in ("rdm", "msg")),
    *_vary("rdm_pingpong -I 5", *_FOUR),
    *_vary("rdm_tagged_pingpong -I 5", *_FOUR),
    *_vary("rdm_bw -I 5", *_FOUR),
    *_vary("rdm_tagged_bw -I 5", *_FOUR),
    "dgram_pingpong -I 5",
]

# As libfabric's, with the repetitions that each size has without -I.
STANDARD = [
    *_vary("msg_pingpong", "", "-v", "-k"),
    *_vary("msg_bw", "", "-v"),
    *(f"rma_bw -e rdm {operation}" for operation in _OPERATIONS),
    *(f"rma_bw -e msg {operation}" for operation in _OPERATIONS),
    "rma_pingpong",
    "rma_tx_completion",
    "rdm_cntr_pingpong",
    *_vary("rdm_pingpong", "", "-U", "-v", "-k"),
    *_vary("rdm_tagged_pingpong", "", "-U", "-v"),
    *_vary("rdm_tagged_bw", "", "-U", "-v"),
    *_vary("rdm_bw", "", "-U", "-v"),
    *_vary("rdm_pingpong -I 200", "-b", "-E", "-r", "-c spin", "-c fd", "-t counter", "-l"),
    *_vary("multi_recv -e rdm", "", "-v"),
    "dgram_pingpong",
]

THREADED = [f"rdm_bw_mt -I 50 -n {threads}{how}" for threads in (2, 4, 8) for how in ("", " -g")]

SETS: dict[str, list[str]] = {
    "unit": UNIT,
    "functional": FUNCTIONAL,
    "short": SHORT,
    "standard": STANDARD,
    "threaded": THREADED,
    "multinode": [
        *(
            f"multinode -n 4 -x {pattern}"
            for pattern in ("full_mesh", "ring", "gather", "broadcast", "all_to_all")
        ),
        "multinode_coll -n 4",
        "multinode_coll -n 3 -S 1048576 -I 3",
    ],
}
SETS["quick"] = [*UNIT, *FUNCTIONAL, *SHORT]
SETS["all"] = [*SETS["quick"], *STANDARD, *THREADED, *SETS["multinode"]]


def entries_of(sets: tuple[str, ...]) -> list[str]:
    """Command lines of several sets, each once."""
    return list(dict.fromkeys(line for name in sets for line in SETS[name]))
