"""`penstock gnn`."""

from __future__ import annotations

import dataclasses
import os
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from penstock.callbacks import Progress
from penstock.cli.graph_options import print_json
from penstock.cli.inputs import names_refused, refuse_inputs
from penstock.cli.output import cannot_be_written
from penstock.cli.progress_bar import progress_bar
from penstock.cli.size_option import Size
from penstock.machine import default_cache_dir
from penstock.sizes import format_bytes, format_seconds, parse_size

if TYPE_CHECKING:
    from penstock.gnn.training import Epoch, Interrupted, Result

PACKAGES = "debian"
PLACEMENTS = ("host", "hbm", "storage", "host-cached", "tiered")
BELOW = ("host", "host-cached", "storage")
METHODS = ("degree", "reverse_pagerank", "weighted_reverse_pagerank", "frequency")
GRAPH_PLACEMENTS = ("host", "hbm", "storage", "host-cached")


class Hot(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "size or share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        try:
            if value.endswith("%"):
                return float(value[:-1]) / 100
            return parse_size(value, "hot")
        except ValueError:
            self.fail(f"'{value}': write a size as 4GiB, or a share of the rows as 10%", param, ctx)


class Fanout(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "n,n,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        try:
            return tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail(f"'{value}': write the neighbours of each hop as 15,10,5", param, ctx)


class OutputFile(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(value)
        if problem := cannot_be_written(path):
            self.fail(problem, param, ctx)
        return path


class Checkpoint(OutputFile):
    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """A folder of checkpoints is one, too."""
        path = Path(value)
        return path if any(path.glob("checkpoint-*")) else super().convert(value, param, ctx)


@click.group("gnn", short_help="Train graph neural networks on features that stay where they lie.")
def gnn_group() -> None:
    """Graph neural networks on sampled neighbourhoods, whose features may be larger than memory."""


@gnn_group.command("train", short_help="Train a model on a dataset.")
@click.argument("dataset")
@click.option("--model", type=click.Choice(["sage", "gcn", "gat", "rgcn"]), default="sage", show_default=True)
@click.option(
    "--task",
    type=click.Choice(["nodes", "links"]),
    default="nodes",
    show_default=True,
    help="Predict the labels of nodes, or which nodes have an edge.",
)
@click.option(
    "--fanout", type=Fanout(), default="15,10,5", show_default=True, help="Neighbours of each node, by hop."
)
@click.option(
    "--layers", type=int, help="Of the model; one fan-out is repeated.  [default: one for each hop]"
)
@click.option("--hidden", type=int, default=256, show_default=True, help="Width of the layers.")
@click.option("--heads", type=int, help="Of gat.  [default: 4]")
@click.option("--dropout", type=float, default=0.5, show_default=True, help="Share of the hidden values.")
@click.option("--batch-norm", is_flag=True, help="Normalize hidden values over a batch.")
@click.option("--batch", type=int, default=1024, show_default=True, help="Seeds of a step, in each process.")
@click.option("--epochs", type=int, default=3, show_default=True)
@click.option("--lr", type=float, default=0.003, show_default=True, help="Learning rate of AdamW.")
@click.option("--weight-decay", type=float, default=0.01, show_default=True, help="Of AdamW.")
@click.option(
    "--placement", type=click.Choice(PLACEMENTS), default="host", show_default=True, help="Of the features."
)
@click.option("--hot", type=Hot(), help="Of tiered features what GPU memory keeps.  [default: 10%]")
@click.option(
    "--score",
    type=click.Choice(METHODS),
    help="How the hot rows are found.  [default: weighted_reverse_pagerank]",
)
@click.option("--below", type=click.Choice(BELOW), help="Where the other rows lie.  [default: host]")
@click.option(
    "--peers/--no-peers",
    default=True,
    show_default=True,
    help="Of several processes with tiered features: each keeps another part of the hot rows.",
)
@click.option("--cache", type=Size(), help="Of the features, for placements that have one.")
@click.option(
    "--embeddings",
    type=OutputFile(),
    help="Train a row for each node of the types that have no features, in this .npy file.",
)
@click.option(
    "--embeddings-placement",
    type=click.Choice(["storage", "host", "hbm", "host-cached"]),
    help="Of these rows.  [default: storage]",
)
@click.option("--embeddings-cache", type=Size(), help="Of these rows, for placements that have one.")
@click.option(
    "--graph-placement",
    type=click.Choice(GRAPH_PLACEMENTS),
    default="host",
    show_default=True,
    help="Of the edges.",
)
@click.option(
    "--device", default="auto", show_default=True, metavar="NAME", help="auto, cpu, cuda or cuda:N."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is drawn.")
@click.option("--prefetch", type=int, default=2, show_default=True, help="Batches that are loaded ahead.")
@click.option(
    "--sms",
    type=int,
    default=0,
    show_default=True,
    help="Multiprocessors that sampling and gathering take at most; 0: all.",
)
@click.option("--sm-partition", is_flag=True, help="These are theirs, and the training has the others.")
@click.option(
    "--checkpoint",
    type=Checkpoint(),
    help="File to go on from, written after each epoch; with --embeddings a folder.",
)
@click.option("--checkpoint-every", type=int, default=0, metavar="STEPS", help="And after so many steps.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint, if there is one.")
@click.option(
    "--evaluate-every",
    type=int,
    default=1,
    show_default=True,
    metavar="EPOCHS",
    help="Measure on the validation set; 0: after the last epoch.",
)
@click.option("--folder", type=click.Path(path_type=Path), help="For a dataset that is drawn.")
@click.option("--nodes", type=click.IntRange(1), help="Of a dataset that is drawn.")
@click.option(
    "--relations", type=click.IntRange(1, 256), help="Edge types of a dataset that is drawn.  [default: 1]"
)
@click.option("--trace", type=OutputFile(), help="Write when what ran, for ui.perfetto.dev.")
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout instead of a table.")
@names_refused()
def train_command(
    dataset: str,
    folder: Path | None,
    nodes: int | None,
    relations: int | None,
    trace: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Trains a model on DATASET: a dataset's folder; debian, the packages of this machine; or the name of a
    shape, which is drawn with --nodes into --folder.

    After Ctrl-C the same command with --resume goes on where the training stopped. Several GPUs: start it by
    torchrun.

    \b
    penstock gnn train debian --fanout 10,10
    penstock gnn train papers100M --nodes 1000000 --folder papers
    penstock gnn train papers --model gat --placement storage --cache 4GiB --checkpoint papers.pt
    penstock gnn train MAG240M --nodes 1000000 --relations 4 --folder related --model rgcn
    torchrun --nproc-per-node 4 -m penstock gnn train papers
    """
    if find_spec("torch") is None:
        raise ImportError("train: torch is not installed: pip install 'penstock[pyg]'")
    # Here and not above: torch takes seconds to import.
    from penstock.gnn import data
    from penstock.gnn.training import Interrupted, Options, Timeline, train
    from penstock.gnn.training.options import RGCN

    options = Options(dataset, **given)
    timeline = None if trace is None else Timeline()
    with progress_bar() if _is_first() else nullcontext() as progress:
        place = _dataset_folder(dataset, folder, nodes, relations, progress)
        _refuse_trace(trace, options.checkpoint_path, place)
        if options.model == RGCN and _is_first() and len(data.open(place).edge_types) < 2:
            click.echo(f"penstock: --model rgcn: {place} has no edge types: there is one relation", err=True)
        try:
            result = train(dataclasses.replace(options, dataset=place), timeline=timeline, progress=progress)
        except Interrupted as interrupted:
            if _is_first():
                click.echo(f"penstock: {_how_to_resume(interrupted, options.checkpoint_path)}", err=True)
            raise
    if not _is_first():
        return
    print_json(result.as_dict()) if as_json else _show(result)
    if timeline is not None and trace is not None:
        timeline.write(trace)


@gnn_group.command("reorder", short_help="Number a dataset's nodes by how often they are read.")
@click.argument("dataset", type=click.Path(path_type=Path))
@click.argument("to", type=click.Path(path_type=Path))
@click.option(
    "--score", "method", type=click.Choice(METHODS), default="weighted_reverse_pagerank", show_default=True
)
@click.option("--fanout", type=Fanout(), help="Of score frequency.  [default: 15,10,5]")
@click.option("--memory", type=Size(), default="1GiB", show_default=True, help="That it may take.")
@click.option("--device", default="auto", show_default=True, metavar="NAME", help="That scores the nodes.")
@names_refused()
def reorder_command(
    dataset: Path, to: Path, method: str, fanout: tuple[int, ...] | None, memory: int, device: str
) -> None:
    """Writes DATASET to the new folder TO with its nodes in the order of their scores, so that rows that are
    read often lie side by side. TO/order.npy has the number that each node had.

    \b
    penstock gnn reorder papers papers-by-score
    """
    import numpy as np

    from penstock.drafts import check_new
    from penstock.effects import refuse_without_effect
    from penstock.gnn import data
    from penstock.gnn.training.options import DEFAULT_FANOUT
    from penstock.sampling import Graph
    from penstock.tiering import reorder, score
    from penstock.tiering.scores import SAMPLED

    # Here, too: a large graph takes minutes to read.
    refuse_without_effect(SAMPLED, {"method": method, "fanout": fanout}, "score")
    check_new("reorder to", to)
    if method == "frequency" and fanout is None:
        fanout = DEFAULT_FANOUT
    opened = data.open(dataset)
    with progress_bar() as progress, Graph.open(opened, device=device) as graph:
        train = np.load(opened.train)
        scores = score(graph, method, train_ids=train, fanout=fanout, progress=progress)
        made = reorder(dataset, scores, to, memory=memory, progress=progress)
    click.echo(f"{made.folder}: {made.nodes:,} nodes by {method}, {made.edges:,} edges")


def _is_first() -> bool:
    """Whether this process prints: torchrun starts several."""
    return os.environ.get("RANK", "0") == "0"


def _refuse_trace(trace: Path | None, checkpoint: Path | None, folder: Path) -> None:
    files = [] if checkpoint is None else [checkpoint]
    if folder.is_dir():
        files += [each for each in folder.iterdir() if each.suffix == ".npy" or each.name == "dataset.json"]
    refuse_inputs("--trace", trace, files)


def _dataset_folder(
    name: str, folder: Path | None, nodes: int | None, relations: int | None, progress: Progress | None
) -> Path:
    """Where the dataset is; made first where its shape is named and `folder` is not there."""
    from penstock.gnn import data

    if name == PACKAGES and not Path(name).is_dir():
        for option, value in (("--nodes", nodes), ("--relations", relations)):
            if value is not None:
                raise click.UsageError(
                    f"{option} is for a dataset that is drawn, and {PACKAGES} has its own: leave it out"
                )
        return _packages_folder(folder, progress)
    shape = next((known for known in data.SHAPES if known.lower() == name.lower()), None)
    if Path(name).is_dir() or shape is None:
        drawn: dict[str, Any] = {"--folder": folder, "--nodes": nodes, "--relations": relations}
        for option, value in drawn.items():
            if value is not None:
                raise click.UsageError(
                    f"{option} is for a dataset that is drawn, and {name} is a folder or no shape: leave it "
                    f"out, or name one of {', '.join(data.SHAPES)}"
                )
        return Path(name)
    if folder is None or nodes is None:
        raise click.UsageError(f"{name} is drawn: give --nodes and --folder, or name a folder that is there")
    if not folder.exists():
        if os.environ.get("WORLD_SIZE", "1") != "1":
            raise click.UsageError(f"{folder}: there is no dataset yet: make it with one process first")
        data.generate(folder, shape, nodes=nodes, relations=relations or 1, progress=progress)
        return folder
    found = data.open(folder)
    expected = (nodes, data.SHAPES[shape].width, data.SHAPES[shape].classes, relations or 1)
    if (found.nodes, found.width, found.classes, max(1, len(found.edge_types))) != expected:
        raise ValueError(
            f"train {folder}: it has {found.nodes:,} nodes and is of another shape or size than {shape} with "
            f"{nodes:,}: name another --folder"
        )
    return folder


def _packages_folder(folder: Path | None, progress: Progress | None) -> Path:
    """The dataset of this machine's packages; made first where it is not there."""
    from penstock.gnn import data

    place = default_cache_dir().parent / "gnn" / PACKAGES if folder is None else folder
    if not (place / "dataset.json").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        data.from_debian(place, progress=progress)
    return place


def _how_to_resume(interrupted: Interrupted, checkpoint: Path | None) -> str:
    where = f"stopped in epoch {interrupted.epoch} after step {interrupted.step}"
    if checkpoint is None:
        return f"{where}; nothing is saved: name a file with --checkpoint to go on next time"
    if interrupted.saved:
        return f"{where}, saved to {checkpoint}: the same command with --resume goes on"
    if checkpoint.exists():
        return f"{where}: the same command with --resume goes on from the last checkpoint, {checkpoint}"
    return f"{where}, before the first checkpoint"


def _show(result: Result) -> None:
    options = result.options
    ranks = f", {result.processes} processes" if result.processes > 1 else ""
    title = (
        f"{options['dataset']}: {options['model']}, fan-out {','.join(map(str, options['fanout']))}, "
        f"{result.parameters:,} parameters, features {options['placement']} ({result.device}{ranks})"
    )
    console = Console()
    console.print(_epochs_table(result.epochs, escape(title)))
    console.print(_summary(result), highlight=False)


def _epochs_table(epochs: list[Epoch], title: str) -> Table:
    metrics = list(dict.fromkeys(name for epoch in epochs for name in epoch.valid or {}))
    tiers = list(dict.fromkeys(tier for epoch in epochs for tier in epoch.account.bytes))
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    headings = (
        "epoch",
        "loss",
        *(f"valid\n{name}" for name in metrics),
        "time",
        "waiting",
        "sampling",
        "gather",
    )
    for name in (*headings, *tiers):
        shown.add_column(name, justify="right", overflow="fold")
    for epoch in epochs:
        account = epoch.account
        times = (account.seconds, account.waiting, account.sampling, account.gather)
        shown.add_row(
            str(epoch.number),
            f"{epoch.loss:.4f}",
            *(f"{epoch.valid[name]:.4f}" if epoch.valid else "" for name in metrics),
            *map(format_seconds, times),
            *(format_bytes(account.bytes.get(tier, 0)) for tier in tiers),
        )
    return shown


def _summary(result: Result) -> str:
    parts = [f"{name} {value:.4f}" for name, value in (result.test or {}).items()]
    lines = [f"test: {', '.join(parts)}" if parts else "test: there are no seeds"]
    if result.resumed_at is not None:
        epoch, step = result.resumed_at
        asked = result.options["epochs"]
        if epoch > asked:
            lines.append(
                f"nothing was left to do: the checkpoint has {epoch - 1} epochs, and --epochs is {asked}"
            )
        else:
            lines.append(f"resumed in epoch {epoch} after step {step}")
    if result.overlap.loading > 0:
        lines.append(
            f"{result.overlap.share:.0%} of {format_seconds(result.overlap.loading)} of sampling and "
            "gathering ran behind the training"
        )
    return "\n".join(lines)
