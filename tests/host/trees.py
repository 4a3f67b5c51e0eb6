# SPDX-License-Identifier: BSD-3-Clause
"""Writes recorded trees: a few devices as their drivers describe them in sysfs, by the tables of Linux 6.1 to 6.12."""

from __future__ import annotations

import io
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

CLASS = "sys/class/infiniband"
BRIDGE = "sys/devices/pci0000:80/0000:80:01.0"


def words(text: str) -> list[str]:
    """The names in a line of text."""
    return text.split()


PMA = words(
    "symbol_error link_error_recovery link_downed port_rcv_errors port_rcv_remote_physical_errors "
    "port_rcv_switch_relay_errors port_xmit_discards port_xmit_constraint_errors port_rcv_constraint_errors "
    "local_link_integrity_errors excessive_buffer_overrun_errors VL15_dropped port_xmit_data port_rcv_data "
    "port_xmit_packets port_rcv_packets port_xmit_wait unicast_xmit_packets unicast_rcv_packets "
    "multicast_xmit_packets multicast_rcv_packets"
)
MLX5 = words(
    "rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect out_of_buffer out_of_sequence "
    "duplicate_request rnr_nak_retry_err packet_seq_err implied_nak_seq_err local_ack_timeout_err "
    "resp_local_length_error resp_cqe_error req_cqe_error req_remote_invalid_request req_remote_access_errors "
    "resp_remote_access_errors resp_cqe_flush_error req_cqe_flush_error"
)
MLX5_ROCE = words(
    "rp_cnp_ignored rp_cnp_handled np_ecn_marked_roce_packets np_cnp_sent rx_icrc_encapsulated roce_adp_retrans "
    "roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans"
)
IRDMA = words(
    "rxVlanErrors ip4InOctets ip4InPkts ip4InDiscards ip4InTruncPkts ip4OutOctets ip4OutPkts ip4OutNoRoutes "
    "tcpRetransSegs tcpInOptErrors tcpInProtoErrors iwInRdmaReads iwInRdmaSends iwInRdmaWrites cnpHandled "
    "cnpIgnored cnpSent RxECNMrkd"
)
BNXT_RE = words(
    "active_pds active_qps active_mrs rx_pkts rx_bytes tx_pkts tx_bytes recoverable_errors rx_roce_errors "
    "rx_roce_discards to_retransmits seq_err_naks_rcvd max_retry_exceeded rnr_naks_rcvd missing_resp "
    "unrecoverable_err bad_resp_err oos_drop_count"
)
EFA_PORT = words(
    "tx_bytes tx_pkts rx_bytes rx_pkts rx_drops send_bytes send_wrs recv_bytes recv_wrs rdma_read_wrs "
    "rdma_read_bytes rdma_read_wr_err rdma_read_resp_bytes retrans_bytes retrans_pkts retrans_timeout_events "
    "impaired_remote_conn_events unresponsive_remote_events"
)
EFA_DEVICE = words("submitted_cmds completed_cmds cmds_err no_completion_cmds keep_alive_rcvd create_qp_err")
RXE = words(
    "sent_pkts rcvd_pkts duplicate_request out_of_seq_request rcvd_rnr_err send_rnr_err rcvd_seq_err ack_deferred "
    "retry_exceeded_err retry_rnr_exceeded_err completer_retry_err send_err link_downed rdma_sends rdma_recvs"
)


@dataclass
class Recorded:
    """Files and links of one machine."""

    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)

    def write(self, root: Path) -> Path:
        """As a folder."""
        for path, text in self.files.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for path, target in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
        return root

    def pack(self, file: Path) -> Path:
        """As a compressed archive; each file padded with zeros, as tar does with files of sysfs."""
        with tarfile.open(file, "w:gz") as archive:
            for path, text in self.files.items():
                data = text.encode().ljust(4096, b"\0")
                member = tarfile.TarInfo(f"./{path}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
            for path, target in self.links.items():
                member = tarfile.TarInfo(f"./{path}")
                member.type, member.linkname = tarfile.SYMTYPE, target
                archive.addfile(member)
        return file

    def add_command(self, words: str, output: str, code: int = 0) -> None:
        """What a tool has printed."""
        file = "commands/" + words.replace(" ", "_")
        self.files |= {f"{file}.out": f"{output}\n", f"{file}.code": f"{code}\n"}

    def add_counters(self, folder: str, names: list[str], **values: int) -> None:
        """Counters of a folder: 0 where no value is given."""
        for name in names:
            self.files[f"{folder}/{name}"] = f"{values.get(name, 0)}\n"

    def add_device(
        self, name: str, function: str | None = None, bridge: str = BRIDGE, **attributes: str
    ) -> str:
        """A device, below a port of the root. Returns its folder in ``/sys/class/infiniband``."""
        folder = f"{CLASS}/{name}"
        if function is None:
            place = f"sys/devices/virtual/infiniband/{name}"
        else:
            place = f"{bridge}/{function}/infiniband/{name}"
            self.add_link(bridge, "16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16")
            self.add_function(f"{bridge}/{function}")
            self.links[f"{place}/device"] = f"../../../{function}"
        self.links[folder] = "../../" + place.removeprefix("sys/")
        self.files |= {f"{place}/{key}": f"{value}\n" for key, value in attributes.items()}
        return place

    def add_function(self, folder: str) -> None:
        """What PCI says of a device: NUMA node 1, a link that is narrower than it could be, 61.5 degrees."""
        self.add_link(folder, "16.0 GT/s PCIe", "8", "16.0 GT/s PCIe", "16")
        self.files |= {
            f"{folder}/numa_node": "1\n",
            f"{folder}/local_cpulist": "16-31\n",
            f"{folder}/aer_dev_correctable": "RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3\n",
            f"{folder}/hwmon/hwmon3/temp1_input": "61500\n",
            f"{folder}/hwmon/hwmon3/temp1_crit": "105000\n",
            f"{folder}/hwmon/hwmon3/temp1_label": "asic\n",
        }

    def add_link(self, folder: str, speed: str, width: str, max_speed: str, max_width: str) -> None:
        """A PCI Express link."""
        self.files |= {
            f"{folder}/current_link_speed": f"{speed}\n",
            f"{folder}/current_link_width": f"{width}\n",
            f"{folder}/max_link_speed": f"{max_speed}\n",
            f"{folder}/max_link_width": f"{max_width}\n",
        }

    def add_interface(self, name: str, function_folder: str | None = None, kind: int = 1) -> None:
        """A network interface, with the hardware's folder or without."""
        place = f"{function_folder or 'sys/devices/virtual'}/net/{name}"
        self.links[f"sys/class/net/{name}"] = "../../" + place.removeprefix("sys/")
        if function_folder is not None:
            self.links[f"{place}/device"] = "../../../" + function_folder.rpartition("/")[2]
        self.files |= {
            f"{place}/type": f"{kind}\n",
            f"{place}/mtu": "9000\n",
            f"{place}/speed": "100000\n",
            f"{place}/operstate": "up\n",
            f"{place}/statistics/rx_bytes": "500\n",
            f"{place}/statistics/rx_dropped": "7\n",
        }

    def add_port(self, device: str, number: int = 1, **attributes: str) -> str:
        """A port. Returns its folder."""
        folder = f"{device}/ports/{number}"
        known = {
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
            "rate": "100 Gb/sec (4X EDR)",
            "lid": "0x0",
            "lid_mask_count": "0",
            "sm_lid": "0x0",
            "sm_sl": "0",
            "cap_mask": "0x00010000",
            "link_layer": "Ethernet",
        }
        self.files |= {f"{folder}/{key}": f"{value}\n" for key, value in (known | attributes).items()}
        self.files[f"{folder}/pkeys/0"] = "0xffff\n"
        self.files[f"{folder}/pkeys/1"] = "0x0000\n"
        return folder

    def add_gid(self, port: str, index: int, gid: str, kind: str = "", interface: str = "") -> None:
        """An address; without a type, a slot without an address."""
        self.files[f"{port}/gids/{index}"] = f"{gid}\n"
        if kind:
            self.files[f"{port}/gid_attrs/types/{index}"] = f"{kind}\n"
            self.files[f"{port}/gid_attrs/ndevs/{index}"] = f"{interface}\n"


LOCAL = "fe80:0000:0000:0000:ba59:9fff:fe01:0203"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a00:0001"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"


def mlx5_infiniband() -> Recorded:
    """A ConnectX-6 on InfiniBand, with counters that have reached their maximum and a second port that is down."""
    tree = Recorded()
    device = tree.add_device(
        "mlx5_0",
        "0000:81:00.0",
        node_type="1: CA",
        node_guid="b859:9f03:0001:0203",
        sys_image_guid="b859:9f03:0001:0203",
        node_desc="node1 mlx5_0",
        fw_ver="20.35.1012",
        hca_type="MT4123",
        board_id="MT_0000000223",
        hw_rev="0x0",
    )
    tree.links[f"{device.rpartition('/infiniband')[0]}/driver"] = "../../../../bus/pci/drivers/mlx5_core"
    tree.files["sys/bus/pci/drivers/mlx5_core/bind"] = ""
    port = tree.add_port(
        device,
        rate="200 Gb/sec (4X HDR)",
        lid="0x2a",
        sm_lid="0x1",
        link_layer="InfiniBand",
        cap_mask="0xa651e848",
    )
    tree.add_gid(port, 0, LOCAL, "IB/RoCE v1")
    tree.add_counters(
        f"{port}/counters",
        PMA,
        port_xmit_data=1000,
        port_rcv_data=2**40,
        symbol_error=65535,
        link_downed=255,
        local_link_integrity_errors=15,
        port_rcv_errors=12,
        port_xmit_wait=77,
    )
    tree.add_counters(f"{port}/hw_counters", [*MLX5, "lifespan"], packet_seq_err=4, lifespan=10)
    tree.add_port(
        device, 2, state="1: DOWN", phys_state="2: Polling", rate="10 Gb/sec (4X)", link_layer="InfiniBand"
    )
    return tree


def mlx5_roce() -> Recorded:
    """A ConnectX-6 Dx on Ethernet with DCQCN on priority 3."""
    tree = Recorded()
    device = tree.add_device(
        "mlx5_10", "0000:81:00.0", node_type="1: CA", fw_ver="22.36.1010", hca_type="MT4125"
    )
    port = tree.add_port(device)
    tree.add_gid(port, 0, LOCAL, "IB/RoCE v1", "ens1f0np0")
    tree.add_gid(port, 3, MAPPED, "RoCE v2", "ens1f0np0")
    tree.add_gid(port, 4, EMPTY)
    tree.add_counters(f"{port}/counters", PMA, port_xmit_data=5)
    tree.add_counters(f"{port}/hw_counters", MLX5 + MLX5_ROCE, np_cnp_sent=9, req_cqe_flush_error=64)
    function = device.rpartition("/infiniband")[0]
    tree.add_interface("ens1f0np0", function)
    for side, enabled in (("np", "1"), ("rp", "0")):
        for priority in range(8):
            value = enabled if priority == 3 else "0"
            tree.files[f"{function}/net/ens1f0np0/ecn/roce_{side}/enable/{priority}"] = f"{value}\n"
    tree.files |= {
        f"{function}/net/ens1f0np0/ecn/roce_np/cnp_dscp": "48\n",
        f"{function}/net/ens1f0np0/ecn/roce_np/min_time_between_cnps": "4\n",
        f"{function}/net/ens1f0np0/ecn/roce_rp/rpg_time_reset": "300\n",
        "sys/kernel/debug/mlx5/0000:81:00.0/cc_params/np_cnp_dscp": "48\n",
        "sys/kernel/debug/mlx5/0000:81:00.0/cc_params/rp_hai_rate": "50\n",
    }
    tree.add_command(
        "dcb -j -s pfc show dev ens1f0np0",
        '{"pfc_cap":8,"macsec_bypass":false,"delay":0,'
        '"prio_pfc":[false,false,false,true,false,false,false,false],'
        '"requests":[0,0,0,12,0,0,0,0],"indications":[0,0,0,7,0,0,0,0]}',
    )
    tree.add_command(
        "ethtool -S ens1f0np0",
        "NIC statistics:\n     rx_packets: 500\n     rx0_packets: 400\n     rx_prio3_pause: 7\n"
        "     rx_prio3_pause_duration: 90\n     tx_prio3_pause: 12\n     rx_discards_phy: 5\n"
        "     rx_ecn_mark: 3\n     tx_pause_storm_warning_events: 0\n     ch0_events: 8\n",
    )
    return tree


def mlx4() -> Recorded:
    """A ConnectX-3 without performance management: each counter says so."""
    tree = Recorded()
    device = tree.add_device("mlx4_0", "0000:81:00.0", node_type="1: CA", fw_ver="2.42.5000", hw_rev="1")
    port = tree.add_port(device, rate="56 Gb/sec (4X FDR)", link_layer="InfiniBand", lid="0x3")
    for name in PMA:
        tree.files[f"{port}/counters/{name}"] = "N/A (no PMA)\n"
    return tree


def irdma() -> Recorded:
    """An Intel E810 as iWARP."""
    tree = Recorded()
    device = tree.add_device("irdma0", "0000:81:00.0", node_type="4: RNIC", fw_ver="1.60")
    port = tree.add_port(device)
    tree.add_counters(f"{port}/hw_counters", IRDMA, tcpRetransSegs=21, ip4InOctets=800, cnpSent=2)
    return tree


def bnxt_re() -> Recorded:
    """A Broadcom NetXtreme-E, which has no folder ``counters``."""
    tree = Recorded()
    device = tree.add_device(
        "bnxt_re0", "0000:81:00.0", node_type="1: CA", fw_ver="218.0.219.2", hca_type="0x1750"
    )
    port = tree.add_port(device)
    tree.add_counters(
        f"{port}/hw_counters", BNXT_RE, active_qps=2, rx_bytes=300, to_retransmits=6, recoverable_errors=1
    )
    tree.files["sys/kernel/debug/bnxt_re/0000:81:00.0/cc_config/tos_dscp"] = "26\n"
    return tree


def efa() -> Recorded:
    """An Elastic Fabric Adapter: counters of the device, too, and none of the standard."""
    tree = Recorded()
    device = tree.add_device("rdmap0s6", "0000:81:00.0", node_type="7: unspecified", fw_ver="0.0.0.0")
    tree.add_counters(f"{device}/hw_counters", EFA_DEVICE, submitted_cmds=40, cmds_err=1)
    port = tree.add_port(device, link_layer="Unspecified")
    tree.add_gid(port, 0, LOCAL)
    tree.add_counters(f"{port}/hw_counters", EFA_PORT, rx_drops=5, rdma_read_bytes=4096, retrans_pkts=2)
    return tree


def hfi1() -> Recorded:
    """An Omni-Path adapter."""
    tree = Recorded()
    device = tree.add_device(
        "hfi1_0", "0000:81:00.0", node_type="1: CA", fw_ver="1.27.0", board_id="HFI Adapter 100"
    )
    port = tree.add_port(device, link_layer="InfiniBand", lid="0x7", sm_lid="0x1")
    tree.add_counters(f"{port}/counters", PMA, port_rcv_data=250, excessive_buffer_overrun_errors=15)
    tree.add_counters(f"{port}/hw_counters", ["TxPkt", "RxPkt", "RcvBECN", "XmitWait", "CrcErr"], RcvBECN=3)
    return tree


def rxe() -> Recorded:
    """Soft-RoCE over eth0: no bus, no interface below it, the name of its parent instead."""
    tree = Recorded()
    device = tree.add_device("rxe0", None, node_type="1: CA", parent="eth0", node_guid="5054:00ff:fe12:3456")
    port = tree.add_port(device, rate="2.5 Gb/sec (1X)")
    tree.add_gid(port, 0, LOCAL, "IB/RoCE v1", "eth0")
    tree.add_gid(port, 1, MAPPED, "RoCE v2", "eth0")
    tree.add_counters(f"{port}/hw_counters", RXE, sent_pkts=1000, completer_retry_err=8)
    tree.add_interface("eth0")
    tree.add_interface("lo", kind=772)
    tree.files["proc/net/snmp"] = (
        "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs RetransSegs CurrEstab\n"
        "Tcp: 1 200 120000 -1 5 900 4 2\n"
    )
    tree.files["proc/net/netstat"] = (
        "TcpExt: SyncookiesSent TCPTimeouts ListenDrops\nTcpExt: 0 6 0\nIpExt: InOctets InCEPkts\nIpExt: 99 11\n"
    )
    return tree


def together() -> Recorded:
    """One machine with devices of several drivers, and TCP."""
    machine = mlx5_infiniband()
    for other in (mlx5_roce(), rxe(), bnxt_re()):
        machine.files = other.files | machine.files
        machine.links = other.links | machine.links
    return machine


ALL = {each.__name__: each for each in (mlx5_infiniband, mlx5_roce, mlx4, irdma, bnxt_re, efa, hfi1, rxe)}
