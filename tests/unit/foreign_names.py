# SPDX-License-Identifier: BSD-3-Clause
"""Names in the pages that are not ours, or of the tests alone: page by page, for test_documented_names.py."""

__all__ = ["FOREIGN"]

SEAMS = "docs/explanation/seams.md"
LIBFABRIC = "docs/reference/libfabric.md"
LAYERS = "docs/explanation/layers.md"
EXPLORING, TESTING = "docs/explanation/exploring.md", "docs/reference/testing.md"
RDM = "docs/explanation/rdm.md"
GUESTS = "docs/how-to/rdma-without-hardware.md"
DASK, WORK = "docs/how-to/use-dask.md", "docs/how-to/work-on-ofipy.md"

FOREIGN: set[tuple[str, str]] = {
    ("docs/reference/security.md", "ofipy/1"),  # a protocol of TLS
    # Entries of a provider's tables in C.
    *((page, name) for page in (SEAMS, LIBFABRIC) for name in ("domain.open", "endpoint.open")),
    # Not there yet, and said to be needed.
    (RDM, "native/rdm/session"),
    # libfabric's.
    (LIBFABRIC, "fi_triggered_context()"),
    (LIBFABRIC, "providers/fi_peer.h"),
    # Of the tests' own provider, which need not be installed.
    ("docs/how-to/write-a-provider.md", "OFIPY_FAKE_EAGER_SIZE"),
    # Of the tests themselves.
    *((GUESTS, name) for name in ("OFIPY_TWO_GUESTS", "OFIPY_LOST_PEERS", "OFIPY_RUNS", "--wire")),
    ("docs/reference/performance.md", "OFIPY_STRESS"),
    *((EXPLORING, f"OFIPY_TEST_{name}") for name in ("GRAPHS", "STEPS", "SEED")),
    *((TESTING, option) for option in ("--report", "--undo", "--scenario", "--replay")),
    ("docs/explanation/verbs.md", "ofipy verbs"),  # what the bytes of a proof begin with
    *((WORK, option) for option in ("--starts", "--scenario", "--undo", "--way")),
    *((WORK, f"OFIPY_{name}") for name in ("STORM_SECONDS", "RACES", "FUZZ_SECONDS", "SEED")),
    # What `ofipy run` sets, and nobody else.
    ("docs/explanation/jobs.md", "OFIPY_JOB_RANK"),
    # mpi4py's and pyzmq's.
    *(("docs/tutorial/from-mpi4py.md", f"recv({name}=)") for name in ("source", "tag", "status")),
    *(("docs/tutorial/from-mpi4py.md", name) for name in ("Request.Waitall", "send(dest=)", "send(tag=)")),
    *(("docs/tutorial/from-pyzmq.md", f"context.{name}") for name in ("socket", "destroy")),
    *(("docs/tutorial/from-pyzmq.md", f"{name}(copy=)") for name in ("send", "recv")),
    ("docs/tutorial/from-pyzmq.md", "server.bind_to_random_port"),
    # Dask's.
    *((DASK, name) for name in ("client.map", "client.submit", "map(pure=)", "--protocol")),
    # Docker's, Apptainer's and pytest's.
    *(
        ("docs/how-to/containers-and-limits.md", f"--{name}")
        for name in ("network", "cap-add", "device", "ulimit", "shm-size", "net", "pid")
    ),
    *(("docs/how-to/dask-shuffle.md", f"client.{name}") for name in ("map", "submit", "gather")),
    # Click's.
    ("docs/reference/cli.md", "OFIPY_COMPLETE"),
    ("docs/how-to/debug.md", "--cap-add"),
    *((WORK, name) for name in ("--large", "--places")),
    # In the user's configuration folder.
    *(
        (f"docs/{page}.md", "ofipy/config.toml")
        for page in ("how-to/choose-a-provider", "how-to/configure", "reference/parameters")
    ),
}
