"""`penstock nvme`: drives that Penstock drives itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from penstock.cli import nvme_report
from penstock.cli.bench import WIDE
from penstock.cli.progress_bar import progress_bar
from penstock.native import load_native
from penstock.nvme import plan
from penstock.nvme.drives import Places, find_drive, full_address, list_drives
from penstock.sizes import format_bytes, format_seconds

MOST_LBA = (1 << 64) - 1
MOST_NAMESPACE = (1 << 32) - 2

as_json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
namespace_option = click.option(
    "--namespace", type=click.IntRange(1, MOST_NAMESPACE), default=1, show_default=True, metavar="N"
)


start_option = click.option("--start", type=click.IntRange(0, MOST_LBA), required=True, metavar="LBA")
blocks_option = click.option("--blocks", type=click.IntRange(1, MOST_LBA), required=True, metavar="N")
overwrite_option = click.option("--yes-overwrite", is_flag=True, help="Do not ask.")


@click.group("nvme", short_help="NVMe drives, driven from user space.")
def nvme_group() -> None:
    """NVMe drives that Penstock drives itself, without the kernel's driver.

    A drive is found by `list`, taken from the kernel by `bind`, and given back by `unbind`. In between it
    can be looked at, read and written. docs/NVME.md has what one should know before.

    PENSTOCK_SYSFS, PENSTOCK_PROC and PENSTOCK_DEV name other places of /sys, /proc and /dev for list, bind
    and unbind; a drive is always opened through the real ones.
    """


@nvme_group.command("list", short_help="Which drives there are, and which driver has each.")
@as_json_option
def list_command(as_json: bool) -> None:
    """Show the NVMe drives of this machine, the driver that has each and how it is attached."""
    drives = list_drives()
    if as_json:
        click.echo(json.dumps([drive.as_dict() for drive in drives]))
        return
    if not drives:
        click.echo("There are no NVMe drives on this machine's PCI buses.")
        return
    _show(nvme_report.drives_table(drives))
    for note in nvme_report.notes(drives):
        click.echo(note)


@nvme_group.command("bind", short_help="Take drives from the kernel.")
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option("--force", is_flag=True, help="Although it is in use: what is not written is lost.")
@click.option(
    "--owner", default=None, metavar="USER", help="Who may drive it afterwards, without being root."
)
@yes_option
def bind_command(addresses: tuple[str, ...], force: bool, owner: str | None, yes: bool) -> None:
    """Takes drives from the kernel's driver, so that Penstock may drive them. Needs root."""
    places = Places()
    to = plan.find_owner(owner) if owner is not None else None
    drives = plan.find_drives(addresses, places)
    plan.check_bind(drives, force, to, places)
    if any(not drive.iommu_group for drive in drives):
        click.secho(plan.NO_IOMMU, err=True, fg="red", bold=True)
    _do(
        "bind",
        drives,
        plan.tell_bind(drives, to, places),
        yes,
        lambda each: plan.bind(each, force, to, places),
    )


@nvme_group.command("unbind", short_help="Give drives back to the kernel.")
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@yes_option
def unbind_command(addresses: tuple[str, ...], yes: bool) -> None:
    """Gives drives back to the kernel's driver. Needs root."""
    places = Places()
    drives = plan.find_drives(addresses, places)
    plan.check_unbind(drives, places)
    _do("unbind", drives, plan.tell_unbind(drives), yes, lambda each: plan.unbind(each, places))


@nvme_group.command("identify", short_help="What a drive says of itself.")
@click.argument("address")
@as_json_option
def identify_command(address: str, as_json: bool) -> None:
    """Opens a drive and shows what it says of itself, and its namespaces."""
    described = load_native().nvme_identify(_found(address))
    if as_json:
        click.echo(json.dumps(described))
        return
    _show(nvme_report.facts_table(described), nvme_report.namespaces_table(described["namespaces"]))
    for problem in nvme_report.problems(described["namespaces"]):
        click.echo(problem)


@nvme_group.command("smart", short_help="How a drive is: temperature, wear, errors.")
@click.argument("address")
@as_json_option
def smart_command(address: str, as_json: bool) -> None:
    """Opens a drive and shows its health: temperature, wear, errors."""
    facts = load_native().nvme_smart(_found(address))
    if as_json:
        click.echo(json.dumps(facts))
        return
    _show(nvme_report.health_table(facts))


@nvme_group.command("read", short_help="Blocks into a file.")
@click.argument("address")
@namespace_option
@click.option("--start", type=click.IntRange(0, MOST_LBA), default=0, show_default=True, metavar="LBA")
@blocks_option
@click.option("-o", "--output", required=True, metavar="FILE", help="- is the standard output.")
@click.option("--replace", is_flag=True, help="A file that exists.")
def read_command(address: str, namespace: int, start: int, blocks: int, output: str, replace: bool) -> None:
    """Reads blocks of a namespace into a file, which appears when it is whole."""
    found = _found(address)
    if output == "-" and sys.stdout.isatty():
        raise ValueError("read: blocks are nothing for a terminal: name a file with -o, or pipe them on")
    with progress_bar() as progress:
        done = load_native().nvme_read(found, namespace, start, blocks, output, replace, progress)
    _tell("read", done)


@nvme_group.command("write", short_help="A file over blocks.")
@click.argument("address")
@namespace_option
@start_option
@click.option(
    "--blocks",
    type=click.IntRange(1, MOST_LBA),
    default=None,
    metavar="N",
    help="[default: what the file has]",
)
@click.option(
    "-i",
    "--input",
    "source",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Whole blocks.",
)
@overwrite_option
def write_command(
    address: str, namespace: int, start: int, blocks: int | None, source: Path, yes_overwrite: bool
) -> None:
    """Writes a file over blocks of a namespace, and flushes them: what was there is lost."""
    found = _found(address)
    size = source.stat().st_size
    place = f"{size:,} bytes of namespace {namespace} of {found}, from block {start} on"
    _ask("write", [f"{place}, are overwritten by {source}."], yes_overwrite, "--yes-overwrite")
    with progress_bar() as progress:
        done = load_native().nvme_write(found, namespace, start, blocks or 0, str(source), progress)
    _tell("wrote", done)


@nvme_group.command("zero", short_help="Zeros over blocks, without moving any.")
@click.argument("address")
@namespace_option
@start_option
@blocks_option
@overwrite_option
def zero_command(address: str, namespace: int, start: int, blocks: int, yes_overwrite: bool) -> None:
    """Has the drive write zeros over blocks of a namespace, and flushes them: what was there is lost."""
    found = _found(address)
    place = f"{blocks:,} blocks of namespace {namespace} of {found}, from block {start} on"
    _ask("zero", [f"{place}, are overwritten by zeros."], yes_overwrite, "--yes-overwrite")
    with progress_bar() as progress:
        done = load_native().nvme_zero(found, namespace, start, blocks, progress)
    _tell("zeroed", done)


@nvme_group.command("discard", short_help="Blocks that the drive may forget.")
@click.argument("address")
@namespace_option
@start_option
@blocks_option
@overwrite_option
def discard_command(address: str, namespace: int, start: int, blocks: int, yes_overwrite: bool) -> None:
    """Deallocate blocks whose content is wanted no more (as TRIM does).

    What they read as, until they are written again, is the drive's choice: zeros, or what was there.
    """
    found = _found(address)
    place = f"{blocks:,} blocks of namespace {namespace} of {found}, from block {start} on"
    _ask("discard", [f"{place}, are given up: what they hold is lost."], yes_overwrite, "--yes-overwrite")
    with progress_bar() as progress:
        done = load_native().nvme_discard(found, namespace, start, blocks, progress)
    _tell("discarded", done)


def _found(address: str) -> str:
    """The whole address. Raises ValueError where no such drive is."""
    return find_drive(full_address(address)).address


def _tell(verb: str, done: dict[str, Any]) -> None:
    rate = done["bytes"] / max(done["seconds"], 1e-9) / 1e9
    click.echo(
        f"{verb} {done['blocks']:,} blocks, {format_bytes(done['bytes'])}, with {done['commands']:,} commands"
        f" in {format_seconds(done['seconds'])} ({rate:.2f} GB/s)",
        err=True,
    )


def _do(verb: str, drives: list[Any], facts: list[str], yes: bool, step: Callable[[Any], str]) -> None:
    _ask(verb, facts, yes, "--yes")
    for drive in drives:
        click.echo(step(drive))


def _ask(verb: str, facts: list[str], yes: bool, flag: str) -> None:
    """Says what will be done, and goes on when somebody agrees."""
    for line in facts:
        click.echo(line, err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(f"{verb}: nobody is there to be asked: {flag} does it without")
    if not click.confirm("Go on?", err=True):
        raise ValueError(f"{verb}: nothing was done")


def _show(*tables: Any) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)  # nothing is folded that goes to a file
    for each in tables:
        console.print(each)
