# SPDX-License-Identifier: BSD-3-Clause
"""Files of a topology: documents of hosts, and what ibnetdiscover printed, told apart by what is in them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ofipy.topology.fabric import is_fabric, read_fabric
from ofipy.topology.graph import Edge, EdgeKind, Graph, Node, NodeKind

__all__ = ["UnknownFile", "merge_files"]


class UnknownFile(Exception):
    """The file is neither a document of ofipy topology nor the output of ibnetdiscover."""


def merge_files(texts: Sequence[tuple[str, str]], names: Mapping[str, str]) -> Graph:
    """One graph of all files. Hosts come first, so that what they know names what the fabric knows.

    Parameters
    ----------
    texts : sequence of (str, str)
        Names and contents of files.
    names : mapping
        Names of the fabric's nodes by GUID.

    Raises
    ------
    UnknownFile
        With what is wrong with a file.
    """
    graph = Graph()
    fabrics = []
    for name, text in texts:
        if text.lstrip().startswith("{"):
            graph.merge(read_document(name, text))
        elif is_fabric(text):
            fabrics.append(read_fabric(text, names))
        else:
            raise UnknownFile(
                f"{name} has neither a document of ofipy topology --json nor output of ibnetdiscover"
            )
    for fabric in fabrics:
        graph.merge(fabric)
    return graph


def read_document(name: str, text: str) -> Graph:
    """The graph in a document.

    Raises
    ------
    UnknownFile
        When it is another document, or one of another schema.
    """
    try:
        document = json.loads(text)
        if document["schema"] != 1:
            raise UnknownFile(f"{name} has schema {document['schema']}; this release reads 1")
        graph = Graph()
        for told in document["nodes"]:
            graph.add(Node(**{**choose(Node, told), "kind": NodeKind(told["kind"])}))
        for told in document["edges"]:
            ends = {"first": told["from"], "second": told["to"]}
            edge = Edge(**{**choose(Edge, told | ends), "kind": EdgeKind(told["kind"])})
            if edge.first in graph.nodes and edge.second in graph.nodes:
                graph.connect(edge)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnknownFile(f"{name} is no document of ofipy topology --json: {error}") from error
    return graph


def choose(record: type, told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record; a later release may tell more."""
    known = {each.name for each in fields(record)}
    return {name: value for name, value in told.items() if name in known}
