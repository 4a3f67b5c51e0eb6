# SPDX-License-Identifier: BSD-3-Clause
"""Where libfabric's providers do otherwise than its manual says, or than ofipy's own providers do.

Each row turns the tests that it names into expected failures, strictly: a repair there, or in a later libfabric,
is noticed. What would take the test process along, or long, is not run.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

__all__ = ["Deviation", "deviation_of"]

NEWEST = (99, 0)


@dataclass(frozen=True, slots=True)
class Deviation:
    """One row."""

    providers: tuple[str, ...]
    tests: tuple[str, ...]
    """Patterns of names: ``test_x*``, ``test_x[*-match]`` (parameters behind the target), ``test_file.py::test_x``."""
    evidence: str
    first: tuple[int, int] = (1, 8)
    """Version of libfabric."""
    last: tuple[int, int] = NEWEST
    run: bool = True
    """False: it does not fail but crash, or hang."""


TCP = ("ofi:tcp",)
SHM = ("ofi:shm",)
LAYERED = ("ofi:tcp;ofi_rxm",)
BOTH = TCP + SHM

# Pairs: our tcp is first, or libfabric's is.
TO_LIBFABRIC = ("tcp,ofi:tcp",)
FROM_LIBFABRIC = ("ofi:tcp,tcp",)
PAIRS = TO_LIBFABRIC + FROM_LIBFABRIC

DEVIATIONS = (
    Deviation(
        BOTH + LAYERED + FROM_LIBFABRIC,
        (
            "test_it_and_what_follows_wait_for_what_was_before",
            "test_it_concerns_one_peer",
            "test_a_held_one_can_be_cancelled",
            "test_closing_ends_what_is_held",
            "test_what_is_held_ends_with_the_peer",
            "test_close_cancels_what_is_in_flight",
            "test_close_ends_waits_of_other_threads",
            "test_completion_levels[*-match]",
            "test_match_complete_waits_for_the_receive",
            "test_a_smaller_transmit_queue",
            "test_a_record_s_own_level_wins_over_the_default",
            "test_full_transmit_queue",
            "test_messages_outlive_their_sender",
            "test_removal_cancels_what_is_under_way_to_that_peer_only",
            "test_what_a_program_sees[*-sends-of-every-level]",
            "test_an_end_that_does_not_come",
        ),
        "no FI_MATCH_COMPLETE: fi_getinfo with it among tx_attr->op_flags answers -FI_ENODATA",
    ),
    Deviation(
        TCP + LAYERED + PAIRS,
        ("test_a_write_that_fails_says_so_itself",),
        "the wire of libfabric's tcp has no refusal: a wrong key ends the connection, and the writes behind it too",
        run=False,
    ),
    Deviation(
        TO_LIBFABRIC,
        ("test_a_peer_that_is_lost_meanwhile",),
        "libfabric acknowledges no message before a receive takes it, so the test would wait in vain",
        run=False,
    ),
    Deviation(
        BOTH + LAYERED + FROM_LIBFABRIC,
        ("test_a_peer_that_was_lost_before", "test_a_peer_that_is_lost_meanwhile"),
        "libfabric does not report the end of a peer: what was posted to it stays in flight, or ends without its name",
        run=False,
    ),
    Deviation(
        BOTH + LAYERED,
        ("test_probe_of_untagged_messages",),
        "FI_PEEK is for tagged messages (fi_tagged(3))",
    ),
    Deviation(
        TCP,
        (
            "test_truncation_tells_the_true_length",
            "test_error_rows",
            "test_what_a_program_sees[*-receives-that-fail]",
            "test_what_a_program_sees[*-raw-messages]",
        ),
        "len and olen of a truncated receive's error entry are 0 (prov/tcp/src/xnet_cq.c, xnet_report_error)",
        first=(1, 18),
    ),
    Deviation(
        TCP,
        (
            "test_rma.py::test_inject_write[*/msg]",
            "test_rma.py::test_sizes[*/msg-*]",
            "test_rma.py::test_scatter_on_both_sides[*/msg]",
            "test_rma.py::test_many_writes_in_flight[*/msg]",
            "test_rma.py::test_prepared[*/msg]",
        ),
        "a message for which no receive is posted holds up all that comes behind it on a connected endpoint's "
        "connection, the answers to RMA too (prov/tcp/src/xnet_progress.c); where it does not depend on timing, each "
        "would take as long as a wait may last",
        run=False,
    ),
    Deviation(
        TO_LIBFABRIC,
        ("test_what_a_program_sees[*-receives-that-fail]", "test_what_a_program_sees[*-raw-messages]"),
        "the same",
        first=(1, 18),
    ),
    Deviation(
        SHM,
        (
            "test_truncation_tells_the_true_length[*-2-1-*]",
            "test_truncation_tells_the_true_length[*-90-0-*]",
            "test_error_rows",
            "test_what_a_program_sees[*-raw-messages]",
        ),
        "the same (prov/shm/src/smr_comp.c, smr_write_err_comp)",
        first=(2, 5),
    ),
    Deviation(
        LAYERED,
        (
            "test_truncation_tells_the_true_length",
            "test_error_rows",
            "test_what_a_program_sees[*-receives-that-fail]",
            "test_what_a_program_sees[*-raw-messages]",
        ),
        "len of a truncated receive's error entry has the bytes that olen has too (fi_cq(3): len is what was received)",
    ),
    Deviation(
        LAYERED + SHM,
        ("test_layouts.py::test_messages_that_do_not_fit[*",),
        "once a message was truncated, the second one that is too long never ends, in contiguous memory either",
        run=False,
    ),
    Deviation(
        SHM,
        ("test_different_calls_are_told",),
        "the remote CQ data of a truncated receive's error entry are 0, so its call is not known "
        "(prov/shm/src/smr_comp.c, smr_write_err_comp)",
    ),
    Deviation(
        LAYERED,
        ("test_remote_cq_data", "test_what_a_program_sees[*-raw-remote-operations]"),
        "a write with remote CQ data tells no source",
    ),
    Deviation(
        LAYERED,
        (
            "test_descriptor",
            "test_idle_process_uses_no_cpu",
            "test_idle_loop_burns_nothing",
            "test_sleeping_takes_no_processor_time",
        ),
        "its descriptor is an epoll in an epoll in an epoll, which leaves no room for a program's own, so who sleeps "
        "on a queue looks by the clock",
    ),
    Deviation(
        SHM,
        (
            "test_truncation_tells_the_true_length[*",
            "test_what_a_program_sees[*-receives-that-fail]",
        ),
        "a longer message that is truncated never ends: the copy goes on until as many bytes are moved as it has "
        "(prov/shm/src/smr_progress.c, smr_progress_sar)",
        first=(2, 5),
        run=False,
    ),
    Deviation(
        TCP,
        ("test_between_two_sides",),
        "beyond FI_TCP_MAX_SAVED (64) unexpected messages a connection is no longer read (prov/tcp/src/xnet_init.c, "
        "xnet_max_saved), so one thread's messages may hold up those that the other side waits for; depends on timing",
        run=False,
    ),
    Deviation(
        TCP + TO_LIBFABRIC,
        ("test_no_receive_need_be_there[*-untagged-*]",),
        "an untagged message without a receive is neither kept nor acknowledged, and nothing behind it is read, so the "
        "test would wait in vain",
        run=False,
    ),
    Deviation(
        LAYERED,
        ("test_no_receive_need_be_there", "test_a_target_that_makes_no_progress_delivers_nothing"),
        "longer messages wait for their receive, by rendezvous, and shorter ones are told as delivered when the "
        "transport below has them: observed, with 2.5",
        run=False,
    ),
    Deviation(
        SHM,
        ("test_no_receive_need_be_there",),
        "delivery-complete is told when a receive has taken the message, so the test would wait in vain",
        run=False,
    ),
    Deviation(
        SHM + LAYERED,
        ("test_matching_is_what_a_list_does[*-mixed-?]",),
        "the same as of test_receive_posted_first_wins, below; the test waits for each message that went elsewhere",
        first=(1, 19),
        run=False,
    ),
    Deviation(
        TCP,
        ("test_untagged.py::test_truncation",),
        "a message that is longer than its receive ends the connection (prov/tcp/src/tcpx_progress.c, "
        "tcpx_process_recv)",
        last=(1, 17),
    ),
    Deviation(
        TCP,
        ("test_a_service_is_taken_once",),
        "a listener has its port from fi_listen(3) on, as its socket has SO_REUSEADDR (prov/tcp/src/xnet_pep.c, "
        "xnet_pep_sock_create)",
    ),
    Deviation(
        SHM,
        ("test_meeting_by_service", "test_the_text_of_the_address_leads_there"),
        "addresses are names without a port, which the host:port of a URI cannot say",
    ),
    Deviation(
        SHM,
        ("test_two_names_of_one_port",),
        "a second endpoint of a name is let in: observed, with 2.5",
    ),
    Deviation(
        SHM + LAYERED,
        ("test_receive_posted_first_wins",),
        "of receives for one source and for any the first is not the one that was posted first, and with some tags the "
        "process would crash, so the bridge refuses those (prov/util/src/util_srx.c: util_get_tag takes container_of "
        "with the wrong member)",
        first=(1, 19),
    ),
    Deviation(
        SHM + LAYERED,
        ("test_atomics.py::test_raw",),
        "no FI_DIFF (prov/util/src/util_atomic.c)",
    ),
    Deviation(
        BOTH + LAYERED + FROM_LIBFABRIC,
        (
            "test_peers_that_come_and_go",
            "test_a_killed_process_is_told_of",
            "test_gone_peers.py::test_*",
            "test_a_member_that_is_gone",
        ),
        "RDM endpoints do not tell when a peer goes (fi_eq(3) has events of connections only), so the test would wait "
        "in vain",
        run=False,
    ),
    Deviation(
        TO_LIBFABRIC,
        ("test_unknown_sender_can_be_answered", "test_a_removed_peer_that_comes_back_is_met_again"),
        "no FI_SOURCE_ERR: a sender that is not in the address vector has no name (fi_cq(3)), and our tcp does not "
        "name itself in remote CQ data, as the bridge does",
    ),
    Deviation(
        TCP + LAYERED,
        ("test_many_peers",),
        "the 100th endpoint of a domain is refused with -FI_EINVAL",
    ),
    Deviation(
        TCP + LAYERED + FROM_LIBFABRIC,
        ("test_a_failed_inject_is_told", "test_dropping_everything_in_any_order"),
        "closing while a connection is being made leaks its socket, and a send into one that the peer has closed is "
        "not reported; both depend on timing",
        run=False,
    ),
    Deviation(
        LAYERED,
        ("test_removal_while_other_threads_send",),
        "closing an endpoint that has a part of a message whose sender removed it ends the process: rxm_close_conn "
        "takes the link of a list of such messages for a receive (prov/rxm/src/rxm_conn.c; mended in the development "
        "version of August 2026, 061f7bb)",
        first=(2, 0),
        last=(2, 6),
        run=False,
    ),
    Deviation(
        SHM,
        ("test_a_failed_inject_is_told",),
        "what is sent to an endpoint that was closed lies in its queue, and no error is told, so the test would wait "
        "in vain",
        run=False,
    ),
    Deviation(
        TCP + LAYERED + PAIRS,
        (
            "test_a_peer_that_lies",
            "test_closing_revokes",
            "test_what_a_program_sees[*-reads-and-writes]",
        ),
        "a request whose key, bounds or rights are wrong ends the connection, and what is under way on it with "
        "ECANCELED (prov/tcp/src/xnet_progress.c: xnet_handle_write, xnet_handle_read_req, ofi_mr_verify)",
    ),
    Deviation(
        TCP + LAYERED + PAIRS,
        ("test_revocation_meets_local_threads",),
        "the same, where a write meets the moment in which there is no region: depends on timing",
        run=False,
    ),
    Deviation(
        FROM_LIBFABRIC,
        ("test_revocation_under_load",),
        "the same, since its wire has no other answer",
    ),
    Deviation(
        TCP + PAIRS,
        ("test_a_gibibyte_that_nobody_receives",),
        "its wire cannot hold one message back: what is not kept stops the connection, so the test would wait in vain",
        run=False,
    ),
    Deviation(
        TCP + LAYERED + TO_LIBFABRIC,
        ("test_revocation_under_load",),
        "the same, and fi_close(3) of a region does not wait for a write that is arriving: xnet_handle_write looks at "
        "the key when it begins",
    ),
    Deviation(
        BOTH + LAYERED,
        ("test_errors_of_raw_operations", "test_statistics"),
        "with FI_TRANSMIT_COMPLETE a write has ended before the peer refuses it (fi_endpoint(3))",
    ),
    Deviation(
        SHM,
        (
            "test_a_peer_that_lies",
            "test_closing_revokes",
            "test_a_write_that_fails_says_so_itself",
            "test_what_a_program_sees[*-reads-and-writes]",
        ),
        "a request that is refused for its key, bounds or rights is dropped, and the answer says success: hdr.status "
        "stays 0 (prov/shm/src/smr_progress.c: smr_progress_cmd_rma, smr_progress_cmd_atomic)",
    ),
    Deviation(
        SHM,
        ("test_revocation_under_load",),
        "nobody hears of a refusal (smr_progress_cmd_rma, as above), and the test writes until it hears of one",
        run=False,
    ),
    Deviation(
        SHM,
        ("test_killed_peer_is_noticed",),
        "the death of a process is not seen, and what it leaves in /dev/shm is in the way of later ones",
        run=False,
    ),
)


def deviation_of(provider: str, version: tuple[int, int], file: str, test: str) -> Deviation | None:
    """The row that a test of a file falls under for a provider, with this version of libfabric."""
    for row in DEVIATIONS:
        if provider not in row.providers or not row.first <= version <= row.last:
            continue
        for pattern in row.tests:
            name = test if "[" in pattern else test.partition("[")[0]
            whole = f"{file}::{name}" if "::" in pattern else name
            if fnmatchcase(whole, pattern.replace("[", "[[]", 1)):
                return row
    return None
