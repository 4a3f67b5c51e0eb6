# SPDX-License-Identifier: BSD-3-Clause
"""Reference pages out of the package itself: parameters, providers, records, errors, a check that all is listed."""

import errno
import re
import sys
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import ofipy
from ofipy._base import binding, errors
from ofipy._base.binding import ffi, lib
from ofipy.cli.info import plain

Row = Iterable[nodes.Node]


def make_table(titles: dict[str, int], rows: Iterable[Row]) -> nodes.table:
    """Return a table; `titles` are the columns with their relative widths."""
    group = nodes.tgroup(cols=len(titles))
    group += [nodes.colspec(colwidth=width) for width in titles.values()]
    head, body = nodes.thead(), nodes.tbody()
    head += make_row(nodes.Text(title) for title in titles)
    body += [make_row(cells) for cells in rows]
    group += [head, body]
    table = nodes.table()
    table += group
    return table


def make_row(cells: Row) -> nodes.row:
    """Return a row of one paragraph a cell."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


class Parameters(Directive):
    """``ofipy-parameters [PROVIDER]``: every parameter of the core and of our providers, or those of one provider."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        ofipy.getinfo(provider="shm", explain=True)  # a provider's parameters are declared when it is loaded
        prefix = f"OFIPY_{self.arguments[0].upper()}_" if self.arguments else "OFIPY_"
        rows = (
            (
                nodes.literal(text=parameter.name),
                nodes.Text(parameter.range or "text"),
                nodes.literal(text=parameter.default) if parameter.default else nodes.Text("none"),
                nodes.Text(parameter.help),
            )
            for parameter in ofipy.parameters()
            if parameter.name.startswith(prefix)
        )
        return [make_table({"parameter": 24, "range": 12, "default": 10, "meaning": 54}, rows)]


class Capabilities(Directive):
    """``ofipy-capabilities``: what each kind of endpoint of each provider declares."""

    limits = (
        ("max_msg_size", "longest message, bytes"),
        ("max_rma_size", "longest read or write, bytes"),
        ("max_atomic_size", "longest atomic operation, bytes"),
        ("inject_size", "longest inject, bytes"),
        ("segment_limit", "local pieces of one operation"),
        ("remote_segment_limit", "remote pieces of one operation"),
    )

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        kinds = self.kinds()
        infos = list(kinds.values())
        titles = {"": 34} | dict.fromkeys(kinds, 66 // len(kinds))
        rows: list[Row] = [
            (nodes.literal(text=str(cap.name).lower()), *(nodes.Text(self.has(info, cap)) for info in infos))
            for cap in ofipy.Cap
        ]
        for name in ("msg_order", "rma_order", "atomic_order"):
            orders = ([str(order.name) for order in getattr(info, name)] for info in infos)
            rows.append(
                (nodes.literal(text=name), *(nodes.Text(" ".join(order) or "none") for order in orders))
            )
        for name, meaning in self.limits:
            rows.append((nodes.Text(meaning), *(nodes.Text(f"{getattr(info, name):,}") for info in infos)))
        return [make_table(titles, rows)]

    @staticmethod
    def kinds() -> dict[str, ofipy.Info]:
        """One info, the preferred, of each kind of endpoint: interfaces of one machine are none of the reader's."""
        found: dict[str, ofipy.Info] = {}
        for info in ofipy.getinfo():
            # Not the tests' own, and not what an installed libfabric offers, which differs from machine to machine.
            if info.provider == "fake" or ":" in info.provider:
                continue
            ordered = ", ordered" if info.domain == "shm-ordered" else ""
            found.setdefault(f"{info.provider} {info.ep_type.name.lower()}{ordered}", info)
        return found

    @staticmethod
    def has(info: ofipy.Info, cap: ofipy.Cap) -> str:
        """Whether, and who sees to it."""
        if not info.caps & cap:
            return "no"
        return "yes, added by the core" if info.emulated_caps & cap else "yes"


class ProviderInfo(Directive):
    """``ofipy-provider NAME``: what the first info of a provider says."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        info = ofipy.getinfo(provider=self.arguments[0])[0]
        names = [field.name for field in fields(info) if not field.name.startswith("_")]
        rows = ((nodes.literal(text=name), nodes.Text(self.show(getattr(info, name)))) for name in names)
        return [make_table({"attribute": 30, "value": 70}, rows)]

    @staticmethod
    def show(value: object) -> str:
        """A value for people."""
        value = plain(value)
        if isinstance(value, list):
            return " ".join(value) or "none"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return f"{value:,}" if isinstance(value, int) else str(value)


class Exceptions(Directive):
    """``ofipy-exceptions``: every exception class, its bases, its errno."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
        rows = (
            (
                nodes.literal(text=kind.__name__),
                nodes.Text(", ".join(base.__name__ for base in kind.__bases__)),
                nodes.Text(f"{errno.errorcode[kind.default_errno]} ({kind.default_errno})"),
                nodes.Text(self.summary(kind)),
            )
            for kind in kinds
            if issubclass(kind, ofipy.FabricError)
        )
        return [make_table({"exception": 20, "is also": 24, "errno by default": 18, "meaning": 38}, rows)]

    @staticmethod
    def summary(kind: type) -> str:
        """The first line of its docstring, without markup."""
        return re.sub(r":class:|`", "", (kind.__doc__ or "").splitlines()[0])


class Codes(Directive):
    """``ofipy-codes``: which error code becomes which exception."""

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        own = {getattr(lib, name): name for name in dir(lib) if re.fullmatch(r"OFP_E[A-Z]{4,}", name)}
        rows = (
            (
                nodes.Text(str(code)),
                nodes.literal(text=own.get(code) or errno.errorcode[code]),
                nodes.literal(text=kind.__name__),
                nodes.Text(ffi.string(lib.ofp_strerror(code)).decode()),
                nodes.Text(binding._REMEDIES.get(code, "")),
            )
            for code, kind in sorted(binding._KINDS.items())
        )
        return [make_table({"code": 8, "name": 18, "exception": 20, "message": 27, "remedy": 27}, rows)]


class RecordType(Directive):
    """``ofipy-dtype NAME``: the fields of a record type."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a heading line and the table."""
        name = self.arguments[0]
        dtype = getattr(ofipy, name)
        rows = (
            (
                nodes.literal(text=field),
                nodes.literal(text=str(dtype.fields[field][0])),
                nodes.Text(str(dtype.fields[field][1])),
            )
            for field in dtype.names
        )
        title = nodes.paragraph("", "", nodes.literal(text=name), nodes.Text(f", {dtype.itemsize} bytes:"))
        return [title, make_table({"field": 40, "type": 40, "offset, bytes": 20}, rows)]


def check_names(app: Sphinx) -> None:
    """Refuse to build while the reference and ``ofipy.__all__`` name different things."""
    folder = Path(app.srcdir) / "reference"
    text = "".join((folder / page).read_text("utf-8") for page in ("api.md", "records.md"))
    listed = set(
        re.findall(
            r"^(?:   |\.\. data:: |\.\. autoclass:: |```\{ofipy-dtype\} )([A-Za-z_]\w*)$",
            text,
            flags=re.MULTILINE,
        )
    )
    public = set(ofipy.__all__) - {"__version__", "measure"}
    if listed != public:
        raise ExtensionError(
            f"api.md and records.md lack {sorted(public - listed)}, name too much: {sorted(listed - public)}"
        )


def name_definitions() -> None:
    """Let public classes name the modules that define them: autodoc reads what stands behind their attributes there."""
    for name, module in list(sys.modules.items()):
        for thing in (getattr(module, own, None) for own in getattr(module, "__all__", ())):
            if name.startswith("ofipy._") and isinstance(thing, type) and thing.__module__ == "ofipy":
                thing.__module__ = name


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    name_definitions()
    app.add_directive("ofipy-parameters", Parameters)
    app.add_directive("ofipy-dtype", RecordType)
    app.add_directive("ofipy-capabilities", Capabilities)
    app.add_directive("ofipy-provider", ProviderInfo)
    app.add_directive("ofipy-exceptions", Exceptions)
    app.add_directive("ofipy-codes", Codes)
    app.connect("builder-inited", check_names)
    return {"parallel_read_safe": True}
