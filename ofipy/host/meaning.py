# SPDX-License-Identifier: BSD-3-Clause
"""What a counter means, by its name: unit, kind, and the value at which it stays.

The names are those of the drivers' tables in Linux (drivers/infiniband/hw and sw) and of the InfiniBand
specification's PortCounters. A name that is in no table is judged by its words: drivers get new counters faster than
this file.
"""

import enum
import re

__all__ = ["RETRIES", "Kind", "find_kind", "find_unit", "is_saturated", "scale"]


class Kind(enum.StrEnum):
    """What a reader wants of a counter."""

    TRAFFIC = "traffic"
    """What was moved."""
    ERROR = "error"
    """What was lost, refused or done again: 0 on a healthy port."""
    CONGESTION = "congestion"
    """How often and how long something had to wait."""
    LEVEL = "level"
    """How many there are now; it goes down, too."""
    OTHER = "other"


# Bits of PortCounters (InfiniBand specification 1.4, 16.1.3.5), which stay at their maximum.
_BITS = {
    "symbol_error": 16,
    "link_error_recovery": 8,
    "link_downed": 8,
    "port_rcv_errors": 16,
    "port_rcv_remote_physical_errors": 16,
    "port_rcv_switch_relay_errors": 16,
    "port_xmit_discards": 16,
    "port_xmit_constraint_errors": 8,
    "port_rcv_constraint_errors": 8,
    "local_link_integrity_errors": 4,
    "excessive_buffer_overrun_errors": 4,
    "VL15_dropped": 16,
    # 32 bits where the port has no PortCountersExtended.
    "port_xmit_data": 32,
    "port_rcv_data": 32,
    "port_xmit_packets": 32,
    "port_rcv_packets": 32,
    "port_xmit_wait": 32,
}
_WORDS_OF_FOUR_BYTES = frozenset(("port_xmit_data", "port_rcv_data", "port_xmit_data_64", "port_rcv_data_64"))
_EXACT = {
    # Each closed queue pair flushes its work requests: that is no error.
    "req_cqe_flush_error": Kind.OTHER,
    "resp_cqe_flush_error": Kind.OTHER,
    "CurrEstab": Kind.LEVEL,
    "unresponsive_remote_events": Kind.ERROR,
    "impaired_remote_conn_events": Kind.ERROR,
    "rp_cnp_ignored": Kind.CONGESTION,
    "port_xmit_wait": Kind.CONGESTION,
    "RxECNMrkd": Kind.CONGESTION,
    "InCEPkts": Kind.CONGESTION,
    "TCPDeliveredCE": Kind.CONGESTION,
    "res_exceed_max": Kind.ERROR,
}
_LEVEL = re.compile(r"^active_")
_CONGESTION = re.compile(
    r"cnp|pfc_|_xo(?:n|ff)|_ecn_|_ce_|pause|slow_restart|congest|fecn|becn|xmitwait", re.IGNORECASE
)
_ERROR = re.compile(
    r"err|discard|drop|retrans|timeout|nak|retry|retries|bad|fail|invalid|exceed|overrun|overflow|oflow|crc|out_of_"
    r"|duplicate|dup_req|missing|missed|mismatch|unsup|unaligned|no_perm|downed|link_error_recovery|trunc|noroute"
    r"|abort|collision|nohandler|lost|pruned|reset",
    re.IGNORECASE,
)
_TRAFFIC = re.compile(
    r"byte|octet|pkt|packet|_data(_64)?$|_wrs$|request|_req$|_resp$|segs$|rdma_sends|rdma_recvs|iwInRdma|iwOutRdma",
    re.IGNORECASE,
)
_BYTES = re.compile(r"bytes|octets", re.IGNORECASE)
_PACKETS = re.compile(r"pkts|packets|InSegs|OutSegs", re.IGNORECASE)

RETRIES = frozenset(
    (
        "packet_seq_err",
        "local_ack_timeout_err",
        "implied_nak_seq_err",
        "rnr_nak_retry_err",
        "roce_adp_retrans",
        "to_retransmits",
        "seq_err_naks_rcvd",
        "rnr_naks_rcvd",
        "retrans_pkts",
        "tcpRetransSegs",
        "completer_retry_err",
        "rcvd_rnr_err",
        "rcvd_seq_err",
    )
)
"""Counters of what a sender sent again, one driver's beside the other's."""


def find_kind(name: str) -> Kind:
    """The kind of a counter. Errors win over traffic: rx_error_packets counts errors."""
    if name in _EXACT:
        return _EXACT[name]
    if _LEVEL.search(name):
        return Kind.LEVEL
    if _CONGESTION.search(name):
        return Kind.CONGESTION
    if _ERROR.search(name):
        return Kind.ERROR
    return Kind.TRAFFIC if _TRAFFIC.search(name) else Kind.OTHER


def find_unit(name: str) -> str:
    """``bytes``, ``packets``, ``ticks`` of the port's clock, or empty: events."""
    if name in _WORDS_OF_FOUR_BYTES or _BYTES.search(name):
        return "bytes"
    if name == "port_xmit_wait":
        return "ticks"
    return "packets" if _PACKETS.search(name) else ""


def scale(name: str) -> int:
    """What the kernel's number is multiplied by to be in its unit."""
    return 4 if name in _WORDS_OF_FOUR_BYTES else 1


def is_saturated(name: str, raw: int) -> bool:
    """Whether a counter has reached the value at which it stays: there may have been any number more."""
    return name in _BITS and raw == (1 << _BITS[name]) - 1
