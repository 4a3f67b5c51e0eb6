# SPDX-License-Identifier: BSD-3-Clause
"""The metrics of RDMA devices and TCP. ``docs/reference/metrics.md`` has a line for each.

A counter that node_exporter has too has node_exporter's name, after ``ofipy_rdma_`` in place of ``node_infiniband_``.
So a query of one becomes a query of the other by its prefix.
"""

from ofipy.exporter.family import Family

__all__ = [
    "CONGESTION_PARAMETER",
    "DEVICE_COUNTERS",
    "DEVICE_FAMILIES",
    "DRIVER_EVENTS",
    "DRIVER_LEVEL",
    "ECN",
    "FLOW_EVENTS",
    "PAUSED",
    "PCIE_ERRORS",
    "PCIE_RATE",
    "PFC",
    "PFC_FRAMES",
    "PHYSICAL_STATE",
    "PHYSICAL_STATES",
    "RATE",
    "RDMA_INFO",
    "RETRIES_SUM",
    "SATURATED",
    "STATE",
    "STATES",
    "TCP_EVENTS",
    "TCP_LEVEL",
    "TEMPERATURE",
    "TEMPERATURE_LIMIT",
]

PORT = ("device", "port")

# The kernel's numbers of states (ib_port_state and ib_port_phys_state of rdma/ib_verbs.h).
STATES = {"NOP": 0, "DOWN": 1, "INIT": 2, "ARMED": 3, "ACTIVE": 4, "ACTIVE_DEFER": 5}
PHYSICAL_STATES = {
    "Sleep": 1,
    "Polling": 2,
    "Disabled": 3,
    "PortConfigurationTraining": 4,
    "LinkUp": 5,
    "LinkErrorRecovery": 6,
    "Phy Test": 7,
}

# Driver's name, metric, what it counts.
_COUNTERS = """
symbol_error | symbol_error | Symbols with an error on a lane.
link_error_recovery | link_error_recovery | Times that the link recovered from an error.
link_downed | link_downed | Times that the link did not recover and went down.
port_rcv_errors | port_errors_received | Packets received with an error.
port_rcv_remote_physical_errors | port_receive_remote_physical_errors | Packets received that end as bad.
port_rcv_switch_relay_errors | port_receive_switch_relay_errors | Packets that a switch could not forward.
port_xmit_discards | port_discards_transmitted | Packets discarded before they were sent.
port_xmit_constraint_errors | port_constraint_errors_transmitted | Packets not sent for their partition or type.
port_rcv_constraint_errors | port_constraint_errors_received | Packets discarded for their partition or type.
local_link_integrity_errors | local_link_integrity_errors | Times that physical errors were above the limit.
excessive_buffer_overrun_errors | excessive_buffer_overrun_errors | Periods of flow control with overruns.
VL15_dropped | vl15_dropped | Management packets dropped.
port_xmit_data | port_data_transmitted_bytes | Bytes sent.
port_rcv_data | port_data_received_bytes | Bytes received.
port_xmit_packets | port_packets_transmitted | Packets sent.
port_rcv_packets | port_packets_received | Packets received.
port_xmit_wait | port_transmit_wait | Ticks in which the port had data and could not send.
unicast_xmit_packets | unicast_packets_transmitted | Unicast packets sent.
unicast_rcv_packets | unicast_packets_received | Unicast packets received.
multicast_xmit_packets | multicast_packets_transmitted | Multicast packets sent.
multicast_rcv_packets | multicast_packets_received | Multicast packets received.
rx_write_requests | rx_write_requests | Write requests received.
rx_read_requests | rx_read_requests | Read requests received.
rx_atomic_requests | rx_atomic_requests | Atomic requests received.
rx_dct_connect | rx_dct_connect_requests | Requests for dynamic connections received.
out_of_buffer | out_of_buffer_drops | Messages dropped, because no receive was posted.
out_of_sequence | out_of_sequence_packets_received | Packets received out of sequence.
duplicate_request | duplicate_requests_packets | Requests received again.
rnr_nak_retry_err | rnr_nak_retry_packets_received | Answers that the receiver was not ready.
packet_seq_err | packet_sequence_errors | Answers that a packet was missing.
implied_nak_seq_err | implied_nak_seq_errors | Acknowledgements beyond the packet that was expected.
local_ack_timeout_err | local_ack_timeout_errors | Packets without an acknowledgement in time.
resp_local_length_error | resp_local_length_errors | Responder: messages longer than the receive.
resp_cqe_error | resp_cqes_errors | Responder: completions with an error.
req_cqe_error | req_cqes_errors | Requester: completions with an error.
req_remote_invalid_request | req_remote_invalid_request_errors | Requester: requests refused as invalid.
req_remote_access_errors | req_remote_access_errors | Requester: requests refused for lack of rights.
resp_remote_access_errors | resp_remote_access_errors | Responder: requests refused for lack of rights.
resp_cqe_flush_error | resp_cqes_flush_errors | Responder: completions of closed queue pairs.
req_cqe_flush_error | req_cqes_flush_errors | Requester: completions of closed queue pairs.
rp_cnp_ignored | rp_cnp_ignored_packets_received | Notifications of congestion that were ignored.
rp_cnp_handled | rp_cnp_packets_handled | Notifications of congestion that slowed a sender down.
np_ecn_marked_roce_packets | np_ecn_marked_roce_packets_received | Packets received that a switch had marked.
np_cnp_sent | np_cnp_packets_sent | Notifications of congestion sent.
rx_icrc_encapsulated | rx_icrc_encapsulated_errors | Packets received with a bad checksum.
roce_adp_retrans | roce_adp_retransmits | Adaptive retransmissions.
roce_adp_retrans_to | roce_adp_retransmits_timeout | Adaptive retransmissions after a timeout.
roce_slow_restart | roce_slow_restart_used | Slow restarts.
roce_slow_restart_cnps | roce_slow_restart_cnps | Notifications sent by slow restart.
roce_slow_restart_trans | roce_slow_restart | Changes of the state of slow restart.
"""


def counter(name: str, help: str, *labels: str) -> Family:
    """What a device has counted since its driver was loaded."""
    return Family(f"ofipy_rdma_{name}_total", "counter", labels, help)


def level(name: str, help: str, *labels: str) -> Family:
    """What is so now."""
    return Family(f"ofipy_rdma_{name}", "gauge", labels, help)


DEVICE_COUNTERS: dict[str, Family] = {
    driver: counter(name, help, *PORT)
    for driver, name, help in (line.split(" | ") for line in _COUNTERS.strip().splitlines())
}
"""By the driver's name."""

RDMA_INFO = level(
    "info",
    "An RDMA device; always 1.",
    *("device", "driver", "firmware_version", "board_id", "hca_type", "numa_node"),
)
STATE = level("state_id", "State: 1 down, 2 init, 3 armed, 4 active, 5 active deferred.", *PORT)
PHYSICAL_STATE = level(
    "physical_state_id", "Link: 1 sleep, 2 polling, 3 disabled, 4 training, 5 up, 6 recovery, 7 test.", *PORT
)
RATE = level("rate_bytes_per_second", "Signal rate of the port.", *PORT)
DRIVER_EVENTS = counter("driver_events", "A counter that has no metric of its own.", *PORT, "counter")
DRIVER_LEVEL = level("driver_level", "A current count of the driver.", *PORT, "counter")
RETRIES_SUM = counter("port_retries", "What was sent again: the sum of the driver's counters of it.", *PORT)
SATURATED = level("saturated_counters", "Counters that have reached the value at which they stay.", *PORT)
PCIE_RATE = level("pcie_bytes_per_second", "What the narrowest PCI link up to the root carries.", "device")
PCIE_ERRORS = counter("pcie_errors", "Errors that the PCI function has reported.", "device", "kind", "error")
TEMPERATURE = level("temperature_celsius", "A sensor of the device.", "device", "sensor")
TEMPERATURE_LIMIT = level(
    "temperature_critical_celsius", "The sensor's critical temperature.", "device", "sensor"
)
ECN = level(
    "ecn_enabled",
    "Whether RoCE's congestion control is on, as notification (np) or reaction (rp) point.",
    *("interface", "priority", "role"),
)
CONGESTION_PARAMETER = level(
    "congestion_parameter",
    "A parameter of RoCE's congestion control (DCQCN), by the driver's name.",
    *("device", "parameter"),
)
PFC = level("pfc_enabled", "Whether priority flow control is on.", "interface", "priority")
PFC_FRAMES = counter(
    "pfc_frames", "Pause frames of priority flow control.", "interface", "priority", "direction"
)
PAUSED = counter(
    "paused_seconds",
    "Time in which frames could not be sent (received), or others were kept from sending (sent).",
    *("interface", "priority", "direction"),
)
FLOW_EVENTS = counter(
    "flow_control_events",
    "A driver's counter of pauses, marks and discards that has no metric of its own.",
    *("interface", "counter"),
)
TCP_EVENTS = Family(
    "ofipy_tcp_events_total",
    "counter",
    ("event",),
    "What the kernel's TCP has counted, by the kernel's name.",
)
TCP_LEVEL = Family("ofipy_tcp_connections", "gauge", (), "TCP connections that are established.")

DEVICE_FAMILIES: tuple[Family, ...] = (
    RDMA_INFO,
    STATE,
    PHYSICAL_STATE,
    RATE,
    PCIE_RATE,
    PCIE_ERRORS,
    TEMPERATURE,
    TEMPERATURE_LIMIT,
    ECN,
    CONGESTION_PARAMETER,
    PFC,
    PFC_FRAMES,
    PAUSED,
    FLOW_EVENTS,
    RETRIES_SUM,
    SATURATED,
    *DEVICE_COUNTERS.values(),
    DRIVER_EVENTS,
    DRIVER_LEVEL,
    TCP_EVENTS,
    TCP_LEVEL,
)
