"""The call that trains."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from penstock.callbacks import Progress
from penstock.gnn.training.options import Options
from penstock.gnn.training.places import check_places
from penstock.gnn.training.results import Result
from penstock.gnn.training.splits import Splits
from penstock.gnn.training.timeline import Timeline

if TYPE_CHECKING:
    from penstock.gnn.training.sources import OpenSource


def train(
    options: Options,
    *,
    source: OpenSource | None = None,
    timeline: Timeline | None = None,
    progress: Progress | None = None,
) -> Result:
    """Trains a model on sampled neighbourhoods, and measures it on the validation and test sets.

    With the same options, data, number of processes and versions the losses are the same; on the CPU bit for
    bit, also where a training was ended and resumed from a checkpoint.

    Started by torchrun, or where torch.distributed has a process group, each process takes its share of the
    seeds, gradients are averaged, and the first process alone writes checkpoints.

    Args:
        options: What to train, on what, and how.
        source: What gives the loaders instead of the dataset in `options.dataset`: called with the
            options and the ranks, it returns a `sources.Source`.
        timeline: Gets the spans of sampling, gathering, waiting and training.
        progress: Called with a line of loss, accuracy and batches a second, the steps done in the epoch and
            those that it has.

    Returns:
        The epochs, the loss of each step, and the trained weights. The same in all processes, but for what is
        timed.

    Raises:
        ImportError: torch_geometric is not installed.
        ValueError: Bad input, such as a checkpoint of another model or dataset; or a loss that is no finite
            number. One sentence.
        penstock.Error: The machine refused, such as a full disk.
        Interrupted: Ctrl-C: a checkpoint is written first, if `options.checkpoint` names its file. Among
            several processes none is: the last one remains.
    """
    if find_spec("torch_geometric") is None:
        raise ImportError("train: torch_geometric is not installed: pip install 'penstock[pyg]'")
    check_places(options)
    source = source or _source_of(options)
    # Here and not above: torch and PyG take seconds to import.
    from penstock.gnn.training.trainer import run

    return run(options, source, timeline, progress)


def _source_of(options: Options) -> OpenSource:
    splits = Splits(options)
    from penstock.gnn.training.sources import DatasetSource

    return partial(DatasetSource, splits=splits)
