"""`penstock volume`: arrays, tables and graphs on raw namespaces."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from penstock.cli import volume_report
from penstock.cli.bench import WIDE
from penstock.cli.progress_bar import progress_bar
from penstock.cli.size_option import Size
from penstock.columns.folders import is_folder, open_folder
from penstock.native import load_native
from penstock.sizes import format_bytes, format_seconds

WRONG = 1
LAYOUTS = ("single", "striped", "replicated")

members_argument = click.argument("members", nargs=-1, required=True, metavar="MEMBER...")
name_argument = click.argument("name")
as_json_option = click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")


@click.group("volume", short_help="Arrays, tables and graphs on raw namespaces of drives.")
def volume_group() -> None:
    """Arrays, tables and graphs on raw namespaces of NVMe drives, without a file system.

    A MEMBER is a namespace of a drive that `penstock nvme bind` took, as 0000:01:00.0/2 (without a number:
    namespace 1), or, to try it, a file or a block device. All members of a volume are named, in any order;
    docs/VOLUMES.md has the format.
    """


@volume_group.command("create", short_help="An empty volume.")
@members_argument
@click.option(
    "--layout", type=click.Choice(LAYOUTS), default=None, help="[default: single; of several members striped]"
)
@click.option("--stripe", type=Size(), default="64KiB", show_default=True, help="Bytes that lie together.")
@click.option("--size", type=Size(), default=None, help="Make files of this size where there are none.")
@click.option("--yes-overwrite", is_flag=True, help="Do not ask; also over volumes and file systems.")
@as_json_option
def create_command(
    members: tuple[str, ...],
    layout: str | None,
    stripe: int,
    size: int | None,
    yes_overwrite: bool,
    as_json: bool,
) -> None:
    """Makes an empty volume on the members, in the order that they are named."""
    native, names = load_native(), list(members)
    chosen = layout or ("single" if len(names) == 1 else "striped")
    known = [probed for probed in native.volume_probe(names) if not probed["blank"]]
    # Those that hold something known are refused by what makes the volume, whatever is answered.
    if known and not yes_overwrite and not any(probed["holds"] for probed in known):
        _ask(
            [
                f"{probed['name']}: {format_bytes(probed['bytes'])}, not empty, are overwritten."
                for probed in known
            ]
        )
    facts = native.volume_create(names, chosen, stripe, size or 0, bool(known), yes_overwrite)
    if as_json:
        click.echo(json.dumps(facts))
        return
    click.echo(f"made {facts['layout']} volume {facts['id']} with room for {format_bytes(facts['bytes'])}")


@volume_group.command("import", short_help="A file, a graph or a table into a volume.")
@members_argument
@name_argument
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE|GRAPH|TABLE")
def import_command(members: tuple[str, ...], name: str, path: Path) -> None:
    """Stores FILE (an array: .npy), or the folder of a GRAPH or a TABLE, as NAME: whole, or if stopped not at
    all."""
    if is_folder(path):
        open_folder(path)  # refuses what is damaged
    with progress_bar() as progress:
        done = load_native().volume_import(list(members), name, str(path), progress)
    _tell("imported", name, done)


@volume_group.command("export", short_help="A file, a graph or a table out of a volume.")
@members_argument
@name_argument
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True), metavar="PATH")
@click.option("--replace", is_flag=True, help="A file that exists.")
def export_command(members: tuple[str, ...], name: str, path: Path, replace: bool) -> None:
    """Writes NAME, checked, to the file PATH (- is the standard output), a folder to the folder PATH."""
    if str(path) == "-" and sys.stdout.isatty():
        raise ValueError("export: its bytes are nothing for a terminal: name a file, or pipe them on")
    with progress_bar() as progress:
        done = load_native().volume_export(list(members), name, str(path), replace, progress)
    _tell("exported", name, done)


@volume_group.command("remove", short_help="Forget a file, a graph or a table.")
@members_argument
@name_argument
def remove_command(members: tuple[str, ...], name: str) -> None:
    """Takes NAME off the volume; its bytes are overwritten when their room is needed."""
    load_native().volume_remove(list(members), name)
    click.echo(f"removed {name}", err=True)


@volume_group.command("list", short_help="What is on a volume.")
@members_argument
@as_json_option
def list_command(members: tuple[str, ...], as_json: bool) -> None:
    """Shows what was imported."""
    entries = volume_report.entries_of(load_native().volume_facts(list(members)))
    if as_json:
        click.echo(json.dumps(entries))
    elif entries:
        _show(volume_report.entries_table(entries))
    else:
        click.echo("The volume is empty.")


@volume_group.command("info", short_help="A volume and its members.")
@members_argument
@as_json_option
def info_command(members: tuple[str, ...], as_json: bool) -> None:
    """Shows layout, room and members, in their order."""
    facts: dict[str, Any] = dict(load_native().volume_facts(list(members)))
    if as_json:
        facts["entries"] = volume_report.entries_of(facts)
        click.echo(json.dumps(facts))
        return
    _show(volume_report.facts_table(facts))


@volume_group.command("verify", short_help="Read all of a volume and check it.")
@members_argument
@as_json_option
def verify_command(members: tuple[str, ...], as_json: bool) -> None:
    """Read every chunk on every member and list what differs from what was written. Exit status 1: some."""
    with progress_bar() as progress:
        verdict = load_native().volume_verify(list(members), progress)
    if as_json:
        click.echo(json.dumps(verdict))
    else:
        for line in volume_report.finding_lines(verdict):
            click.echo(line)
        rate = verdict["bytes"] / max(verdict["seconds"], 1e-9) / 1e9
        found = f"{verdict['problems']:,} wrong" if verdict["problems"] else "all as it was written"
        click.echo(f"read {format_bytes(verdict['bytes'])} ({rate:.2f} GB/s): {found}", err=True)
    if verdict["problems"]:
        sys.exit(WRONG)


def _tell(verb: str, name: str, done: Any) -> None:
    rate = done["bytes"] / max(done["seconds"], 1e-9) / 1e9
    files = "" if done["files"] == 1 else f" in {done['files']} files"
    took = f"{format_seconds(done['seconds'])} ({rate:.2f} GB/s)"
    click.echo(f"{verb} {name}: {format_bytes(done['bytes'])}{files} in {took}", err=True)


def _ask(lines: list[str]) -> None:
    """Says what is lost, and goes on when somebody agrees."""
    for line in lines:
        click.echo(line, err=True)
    if not sys.stdin.isatty():
        raise ValueError("create: nobody is there to be asked: --yes-overwrite does it without")
    if not click.confirm("Go on?", err=True):
        raise ValueError("create: nothing was done")


def _show(*tables: Any) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, WIDE)  # nothing is folded that goes to a file
    for each in tables:
        console.print(each)
