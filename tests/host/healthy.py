# SPDX-License-Identifier: BSD-3-Clause
"""A recording of a host on which nothing is wrong: two InfiniBand and two RoCE ports, two sockets, two moments."""

from __future__ import annotations

import json

from tests.host.trees import LOCAL, MAPPED, MLX5, MLX5_ROCE, PMA, Recorded

CARDS = [f"sys/devices/pci0000:80/0000:80:0{card}.0/0000:8{card}:00.0" for card in (1, 2, 3, 4)]
"""Each in a slot of its own."""
PORT = f"{CARDS[0]}/infiniband/mlx5_0/ports/1"
ROCE = f"{CARDS[2]}/infiniband/mlx5_2/ports/1"
INTERFACE = f"{CARDS[2]}/net/ens1"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max open files            {files:20} 1048576              files\n"
    "Max locked memory         {locked:20} unlimited            bytes\n"
)
SMALL = {"NoECT": 900_000, "ECT1": 0, "ECT0": 100_000, "CE": 10}


def add_card(tree: Recorded, name: str, function: str, board: str, link_layer: str) -> str:
    """A device in a slot of full width, cool, with counters. Returns the folder of its port."""
    folder = next(card for card in CARDS if card.endswith(function))
    guid = f"b859:9f03:00{function[5:7]}:0203"
    bridge = folder.rpartition("/")[0]
    device = tree.add_device(name, function, bridge, node_type="1: CA", board_id=board, node_guid=guid)
    tree.add_link(folder, "16.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "16")
    tree.files |= {
        f"{folder}/aer_dev_correctable": "RxErr 3\nBadTLP 0\nTOTAL_ERR_COR 3\n",
        f"{folder}/aer_dev_nonfatal": "TLP 0\nCmpltTO 0\nTOTAL_ERR_NONFATAL 0\n",
        f"{folder}/aer_dev_fatal": "TLP 0\nTOTAL_ERR_FATAL 0\n",
    }
    lids = {"lid": "0x2a", "sm_lid": "0x1"} if link_layer == "InfiniBand" else {}
    port = tree.add_port(device, rate="200 Gb/sec (4X HDR)", link_layer=link_layer, **lids)
    traffic = {"port_xmit_packets": 10_000_000, "port_rcv_packets": 10_000_000, "port_xmit_data": 250_000_000}
    tree.add_counters(f"{port}/counters", PMA, **traffic, symbol_error=2, port_xmit_wait=1000)
    own = MLX5 if link_layer == "InfiniBand" else MLX5 + MLX5_ROCE
    tree.add_counters(f"{port}/hw_counters", own, packet_seq_err=5)
    return port


def healthy() -> Recorded:
    """The host."""
    tree = Recorded()
    for name, function in (("mlx5_0", "0000:81:00.0"), ("mlx5_1", "0000:82:00.0")):
        tree.add_gid(add_card(tree, name, function, "MT_0000000223", "InfiniBand"), 0, LOCAL, "IB/RoCE v1")
    for name, function, interface in (("mlx5_2", "0000:83:00.0", "ens1"), ("mlx5_3", "0000:84:00.0", "ens2")):
        port = add_card(tree, name, function, "MT_0000000359", "Ethernet")
        tree.add_gid(port, 0, MAPPED, "RoCE v2", interface)
        tree.add_interface(interface, next(card for card in CARDS if card.endswith(function)))
        tree.files[f"commands/ethtool_-S_{interface}.code"] = "0\n"
        tree.files[f"commands/ethtool_-S_{interface}.out"] = (
            "NIC statistics:\n     rx_prio3_pause_duration: 40\n     rx_discards_phy: 0\n"
            "     tx_pause_storm_error_events: 0\n"
        )
    for processor in range(32):
        tree.files[f"sys/devices/system/cpu/cpu{processor}/cpufreq/scaling_governor"] = "performance\n"
    for node, processors in ((0, "0-15"), (1, "16-31")):
        tree.files[f"sys/devices/system/node/node{node}/cpulist"] = f"{processors}\n"
    ecn = " ".join(f"In{name}Pkts" for name in SMALL), " ".join(map(str, SMALL.values()))
    tree.files |= {
        "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme sse2\n",
        "proc/self/status": "Name:\tofipy\nCpus_allowed_list:\t0-31\n",
        "proc/self/limits": LIMITS.format(files="1048576", locked="unlimited"),
        "proc/self/cgroup": "0::/\n",
        "proc/net/netstat": f"IpExt: {ecn[0]}\nIpExt: {ecn[1]}\n",
        "proc/net/snmp": "Tcp: OutSegs RetransSegs\nTcp: 5000000 900\n",
        "proc/sys/kernel/hostname": "node17\n",
        "commands/chronyc_-n_tracking.code": "0\n",
        "commands/chronyc_-n_tracking.out": "Stratum : 3\nSystem time     : 0.000012345 seconds slow of NTP time\n",
    }
    before = {path: text for path, text in tree.files.items() if not path.startswith("proc/self")}
    tree.files |= {f"before/{path}": text for path, text in before.items()}
    tree.links |= {f"before/{path}": target for path, target in tree.links.items()}
    tree.files["meta.json"] = json.dumps({"schema": 1, "seconds": 1.0})
    return tree
