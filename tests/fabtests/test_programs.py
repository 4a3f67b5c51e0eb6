# SPDX-License-Identifier: BSD-3-Clause
"""Programs of each mechanism of the base, as the suite starts them; CI's stage `fabtests` runs all of them."""

import re

import pytest

import ofipy
from fabtests.suite.hosts import Hosts
from fabtests.suite.pair import run_entry


@pytest.mark.parametrize(
    ("entry", "provider"),
    [
        ("rdm_tagged_pingpong -I 5 -v", "shm"),
        ("rdm_pingpong -I 5 -S 64 -v -r", "shm"),
        ("rdm_pingpong -I 5 -S 64 -b -c fd", "tcp"),
        ("rdm_cntr_pingpong -I 5 -S 64", "shm"),
        ("rdm_tagged_bw -I 100 -S 64 -v", "tcp"),
        ("msg_bw -I 100 -S 64 -v", "tcp"),
        ("rma_bw -I 70 -S 4096 -o writedata -v", "shm"),
        ("rma_bw -I 70 -S 4096 -o read -v", "tcp"),
        ("rma_pingpong -I 5 -S 64", "tcp"),
        ("multi_ep -v -A -Q", "shm"),
        ("shared_ctx", "tcp"),
        ("cm_data", "tcp"),
        ("msg_sockets", "tcp"),
        ("multi_ep -e msg -v", "tcp"),
        ("inject_test -e msg -v", "tcp"),
        ("av_xfer", "shm"),
        ("multinode -n 3", "shm"),
        ("multinode_coll -n 3 -I 4", "shm"),
        ("multinode_coll -n 2 -I 2 -S 300000", "tcp"),
        ("rdm_deferred_wq", "tcp"),
        ("rdm_rma_event -t counter", "shm"),
        ("rdm_rma_trigger -t counter", "tcp"),
    ],
)
def test_it_passes(entry: str, provider: str) -> None:
    outcome = run_entry(entry, provider, hosts=Hosts(), limit=60)
    assert outcome.result == "passed", outcome


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        ("msg", "endpoint type msg: shm has none"),
        ("dgram_pingpong", "endpoint type dgram: shm has none"),
        ("mcast", "capability multicast"),
        ("scalable_ep", "capability named_rx_ctx"),
        ("msg_sockets", "endpoint type msg: shm has none"),
        ("rdm_shared_av", "capability shared_av"),
        ("mr_cache_evict", "capability mr_cache"),
        ("check_hmem", "capability hmem"),
        ("rdm_pingpong -k", "capability msg_prefix"),
    ],
)
def test_it_says_what_is_missing(entry: str, missing: str) -> None:
    outcome = run_entry(entry, "shm", hosts=Hosts(), limit=60)
    assert outcome.result == "not_run", outcome
    assert outcome.reason.startswith(missing)
    found = re.fullmatch(r"(endpoint type|capability) (\w+): .+", outcome.reason)
    assert found is not None
    infos = ofipy.getinfo(provider="shm")
    shown = "|".join(f"{info.ep_type.name}|{info.caps!s}" for info in infos).lower().split("|")
    assert "rdm" in shown
    assert found[2] not in shown
