# SPDX-License-Identifier: BSD-3-Clause
"""The subcommands of ``ofipy`` and their options; the modules that do the work are imported late."""

import rich_click as click

from ofipy.cli.filters import parse_filters
from ofipy.cli.key_commands import key
from ofipy.cli.monitor import exporter, top
from ofipy.cli.ping_command import ping
from ofipy.cli.support import HOST, JSON, JSON_LINES, ROOT, Seconds
from ofipy.cli.trace_commands import trace

__all__ = ["ofipy_command"]


@click.group(name="ofipy", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ofipy", prog_name="ofipy")
def ofipy_command() -> None:
    """Messaging for Python over shared memory, TCP, RDMA devices and libfabric."""


ofipy_command.add_command(ping)
ofipy_command.add_command(key)
ofipy_command.add_command(trace)
ofipy_command.add_command(exporter)
ofipy_command.add_command(top)


@ofipy_command.command()
@click.option("-p", "--provider", metavar="NAME", help="Only this provider.")
@click.option(
    "-c", "--caps", metavar="NAME[,NAME]", help="Only infos with all these capabilities, such as tagged,rma."
)
@click.option("-t", "--ep-type", metavar="TYPE", help="Only this endpoint type: rdm, msg or dgram.")
@click.option(
    "--filter",
    "filters",
    callback=parse_filters,
    multiple=True,
    metavar="NAME=VALUE",
    help="Only infos whose device is so: numa_node=0, domain=mlx5_0, link_layer=InfiniBand. May be repeated.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every attribute.")
@click.option("--env", "show_parameters", is_flag=True, help="Show parameters: value, default, origin, help.")
@click.option(
    "--atomics",
    "show_atomics",
    is_flag=True,
    help="Show atomic operations: operations and types of each kind.",
)
@click.option(
    "--protocols",
    "show_protocols",
    is_flag=True,
    help="Show which protocol messages of which length get, and why: two endpoints of each provider connect.",
)
@click.option("--hooks", "show_hooks", is_flag=True, help="Show hooks and their options.")
@click.option(
    "--job", "show_job", is_flag=True, help="Show the job that ofipy.job() would join, and its launcher."
)
@click.option(
    "--version", "show_versions", is_flag=True, help="Show what `ofipy version` does, for reports of faults."
)
@JSON
def info(
    provider: str | None,
    caps: str | None,
    ep_type: str | None,
    filters: tuple[tuple[str, str], ...],
    verbose: bool,
    show_parameters: bool,
    show_atomics: bool,
    show_protocols: bool,
    show_hooks: bool,
    show_job: bool,
    show_versions: bool,
    as_json: bool,
) -> None:
    """List providers: what each can do, or why it cannot run and what to do about it."""
    from ofipy.cli import info as module

    if show_versions:
        from ofipy.cli import version

        version.show_version(as_json=as_json)
        return
    if show_parameters:
        module.show_parameters(as_json=as_json)
    elif show_hooks:
        module.show_hooks(as_json=as_json)
    elif show_job:
        from ofipy.cli import job

        job.show_job(as_json=as_json)
    elif show_protocols:
        from ofipy.cli import protocols

        protocols.show_protocols(provider=provider, as_json=as_json)
    elif show_atomics:
        from ofipy.cli import atomics

        atomics.show_atomics(provider=provider, caps=caps, ep_type=ep_type, as_json=as_json)
    else:
        module.show_providers(
            provider=provider,
            caps=caps,
            ep_type=ep_type,
            filters=filters,
            verbose=verbose,
            as_json=as_json,
        )


@ofipy_command.command()
@click.argument("host", required=False)
@click.option(
    "-p",
    "--provider",
    metavar="NAME",
    help="Only this provider; default: all available providers of ofipy's own, without those of libfabric.",
)
@click.option("--listen", is_flag=True, help="Run the server, for one client.")
@click.option("--port", metavar="PORT", default="9228", show_default=True, help="Port or name of the server.")
@click.option(
    "-S", "--sizes", metavar="SIZE", help="Bytes of a message, as 8,64k,1m, 'all' or r:start,increment,end."
)
@click.option(
    "-I", "--iterations", type=click.IntRange(min=1), metavar="NUMBER", help="Round trips of each size."
)
@click.option(
    "--timeout",
    type=Seconds(),
    metavar="SECONDS",
    help="End with exit code 124 after this time.",
)
@JSON
def pingpong(
    host: str | None,
    provider: str | None,
    listen: bool,
    port: str,
    sizes: str | None,
    iterations: int | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Run a tagged ping-pong and print a table for each provider. Without HOST, both sides run on this machine."""
    from ofipy.cli import pingpong as module
    from ofipy.cli.support import deadline

    if listen and host is not None:
        raise click.UsageError("--listen is for the server side: give no host with it")
    with deadline(timeout):
        module.run(
            host=host,
            provider=provider,
            listen=listen,
            port=port,
            sizes=sizes,
            iterations=iterations,
            as_json=as_json,
        )


@ofipy_command.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "number", type=click.IntRange(min=1), metavar="NUMBER", help="How many processes.")
@click.option(
    "--hosts",
    metavar="HOST[:NUMBER],...",
    help="Hosts, reached over ssh, and processes on each; default: all on this host.",
)
@click.option(
    "--ssh", metavar="COMMAND", default="ssh", show_default=True, help="Command to use instead of ssh."
)
@click.option(
    "--pin/--no-pin", default=True, help="Pin each process to cores of its own, if there are enough."
)
@click.option("--keep-going", is_flag=True, help="When a process fails, leave the others running.")
@click.argument("command", metavar="PROGRAM [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED)
def run(
    number: int | None, hosts: str | None, ssh: str, pin: bool, keep_going: bool, command: tuple[str, ...]
) -> int:
    """Start PROGRAM several times as one job. Its processes find each other by ofipy.job()."""
    from ofipy.cli.run import run_job

    return run_job(command, number=number, hosts=hosts, ssh=ssh, pin=pin, keep_going=keep_going)


@ofipy_command.command()
@click.argument("address", metavar="HOST:PORT")
@click.option("--name", metavar="TEXT", help="Name of the worker in messages; default: process and host.")
def worker(address: str, name: str | None) -> int:
    """Run tasks of the Executor that listens at HOST:PORT. Ctrl-C or SIGTERM ends it after the task that it runs."""
    from ofipy.executor.worker import Worker

    return Worker(address, name=name).serve()


@ofipy_command.command()
@JSON
def version(as_json: bool) -> None:
    """Print the versions of ofipy, its providers, Python and the system."""
    from ofipy.cli import version as module

    module.show_version(as_json=as_json)


@ofipy_command.command()
@click.argument("host", metavar="[HOST[:PORT]]", required=False)
@click.option(
    "--serve",
    is_flag=False,
    flag_value="",
    metavar="[ADDRESS:PORT]",
    help="Be the other side of `ofipy doctor HOST`, at port 19229 if you name none.",
)
@click.option(
    "--job", "is_job", is_flag=True, help="Measure between all processes of the job that a launcher started."
)
@click.option("-p", "--provider", metavar="NAME", help="With HOST, --serve or --job: only this provider.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.05, 10),
    metavar="SECONDS",
    default=1,
    show_default=True,
    help="With HOST: time of each of the four streams.",
)
@ROOT
@click.option(
    "--record",
    metavar="TAR",
    type=click.Path(dir_okay=False),
    help="Write what the rules read of this host into a new archive, for --root elsewhere.",
)
@click.option(
    "--html",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Write the findings into one HTML file, too.",
)
@click.option("--strict", "is_strict", is_flag=True, help="Exit with 1 for warnings, too.")
@JSON
def doctor(
    host: str | None,
    serve: str | None,
    is_job: bool,
    provider: str | None,
    seconds: float,
    root: str | None,
    record: str | None,
    html: str | None,
    is_strict: bool,
    as_json: bool,
) -> None:
    """Check limits, rights, libraries, links, slots and counters, and with HOST the way there; say what to do."""
    from ofipy.cli import doctor as module

    if sum(each is not None for each in (host, serve, root, record, is_job or None)) > 1:
        raise click.UsageError("give one of HOST, --serve, --job, --root and --record")
    if is_job:
        from ofipy.cli.doctor_job import examine_job

        examine_job(provider=provider, as_json=as_json, is_strict=is_strict)
        return
    if host is not None or serve is not None:
        from ofipy.cli import doctor_peer as between

        if host is None:
            between.serve_doctor(between.server_place(serve or ""), provider=provider)
        else:
            between.examine_peer(
                host, provider=provider, seconds=seconds, as_json=as_json, is_strict=is_strict, html=html
            )
        return
    if record is not None:
        if root is not None or as_json or is_strict or html is not None:
            raise click.UsageError("--record only writes an archive: give no other option with it")
        module.record_host(record)
        return
    module.show_checks(root=root, as_json=as_json, is_strict=is_strict, html=html)


@ofipy_command.command()
@click.argument("place", metavar="[DEVICE[/PORT]]", required=False)
@click.option(
    "--watch",
    type=Seconds(),
    metavar="SECONDS",
    help="Then print each change that is seen when it looks again after this time, until Ctrl-C.",
)
@click.option(
    "-n", "--number", type=click.IntRange(min=1), metavar="NUMBER", help="With --watch: look so many times."
)
@ROOT
@HOST
@JSON_LINES
def devinfo(
    place: str | None,
    watch: float | None,
    number: int | None,
    root: str | None,
    host: str | None,
    as_json: bool,
) -> None:
    """Show RDMA devices and their ports, up or down: a line each, or everything about DEVICE."""
    from ofipy.cli.devinfo import show_devices

    check_look(root, host, watch, number)
    show_devices(root=root, host=host, place=place, watch=watch, number=number, as_json=as_json)


def check_look(root: str | None, host: str | None, watch: float | None, number: int | None) -> None:
    """Refuse options that contradict each other.

    Raises
    ------
    click.UsageError
        When they do.
    """
    if number is not None and watch is None:
        raise click.UsageError("--number is for --watch: give both")
    if root is not None and host is not None:
        raise click.UsageError("--root and --host name different machines: give one of them")


@ofipy_command.command()
@click.argument("place", metavar="[DEVICE[/PORT]|INTERFACE]", required=False)
@click.option("--errors", is_flag=True, help="Only counters of errors.")
@click.option("--nonzero", is_flag=True, help="Only counters above 0.")
@click.option(
    "--watch",
    type=Seconds(),
    metavar="SECONDS",
    help="Print again after this time, with what has changed, until Ctrl-C.",
)
@click.option(
    "-n", "--number", type=click.IntRange(min=1), metavar="NUMBER", help="With --watch: print so many times."
)
@ROOT
@HOST
@JSON_LINES
def counters(
    place: str | None,
    errors: bool,
    nonzero: bool,
    watch: float | None,
    number: int | None,
    root: str | None,
    host: str | None,
    as_json: bool,
) -> None:
    """Show the counters of RDMA devices, network interfaces and TCP. None is ever reset."""
    from ofipy.cli.counters import Selection, show_counters

    check_look(root, host, watch, number)
    selection = Selection(errors=errors, nonzero=nonzero)
    show_counters(
        root=root,
        host=host,
        place=place,
        selection=selection,
        watch=watch,
        number=number,
        as_json=as_json,
    )


@ofipy_command.command()
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(allow_dash=True))
@ROOT
@click.option(
    "--names", metavar="FILE", type=click.Path(), help="Names of switches: a node-name-map by GUID."
)
@click.option(
    "--near",
    "core",
    type=click.IntRange(min=0),
    metavar="CPU",
    help="List NICs, the nearest to this processor first.",
)
@click.option("--dot", metavar="FILE", help="Write the graph in Graphviz's language; - is standard output.")
@click.option("--svg", metavar="FILE", help="Draw the graph with Graphviz.")
@JSON
def topology(
    files: tuple[str, ...],
    root: str | None,
    names: str | None,
    core: int | None,
    dot: str | None,
    svg: str | None,
    as_json: bool,
) -> None:
    """Show this host: NUMA nodes, bridges, NICs, ports, GPUs. With FILEs: hosts and the fabric between them.

    A FILE is the document of `ofipy topology --json` on a host, or the output of ibnetdiscover, plain or with -p.
    """
    from ofipy.cli.topology import show_topology

    if files and root is not None:
        raise click.UsageError("--root is for one host: give no file with it")
    show_topology(files, root=root, names=names, core=core, as_json=as_json, dot=dot, svg=svg)


@ofipy_command.command(context_settings={"ignore_unknown_options": True})
@click.argument("error", metavar="CODE|NAME")
@JSON
def strerror(error: str, as_json: bool) -> None:
    """Say what an error is: a number, or a name such as EAGAIN, FI_ETRUNC or PeerLost."""
    from ofipy.cli.strerror import show_error

    show_error(error, as_json=as_json)
