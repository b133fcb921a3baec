"""What a training is given."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.arrays.placement import EFFECTS
from penstock.arrays.spec import PLACEMENTS, ArrayOptions
from penstock.arrays.tiers import BELOW, TIERED
from penstock.checks import check_choice, checked_count, checked_number
from penstock.effects import refuse_without_effect
from penstock.gnn.effects import MULTIPROCESSORS
from penstock.options import checked
from penstock.sizes import whole_number
from penstock.tiering import METHODS

RGCN = "rgcn"
MODELS = ("sage", "gcn", "gat", RGCN)
TABLE_PLACEMENTS = ("storage", "host", "hbm", "host-cached")
NODES, LINKS = TASKS = ("nodes", "links")
ALL = -1
"""As a fan-out: all neighbours of a node."""
DEFAULT_FANOUT = (15, 10, 5)
DEFAULT_HEADS = 4
MOST_SEED = (1 << 31) - 1

# What a checkpoint belongs to: another value is another training.
_FIXED = (
    "model", "task", "fanout", "hidden", "heads", "dropout", "batch_norm", "batch", "lr", "weight_decay",
    "shuffle", "seed",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Options of `train`. All are checked when an object is made.

    Attributes:
        dataset: A dataset's folder, as `penstock.gnn.data.open` takes it.
        model: "sage", "gcn", "gat" or "rgcn", which has weights for each edge type of the dataset; the others
            take all edges for one type.
        task: "nodes" predicts the labels of nodes, "links" whether two nodes have an edge.
        fanout: Neighbours that are sampled of each node, by hop; -1 for all. A model has a layer for each.
        layers: Of the model; one fan-out is repeated that often. None: a layer for each fan-out.
        hidden: Width of the layers; for links also of the nodes' embeddings.
        heads: Of gat, None for 4. Other models have none.
        dropout: Share of the hidden values that a step drops, from 0 below 1.
        batch_norm: Normalize hidden values over a batch.
        batch: Seeds (nodes or edges) of a step, in each process.
        epochs: Passes over the training set, those of a checkpoint included.
        lr: Of AdamW.
        weight_decay: Of AdamW.
        placement: Of the features, as of `penstock.open`, or "tiered".
        peers: With tiers and several processes of one machine: they keep the hot rows together, each another
            part, where their GPUs have a fast link (`penstock.tiering.Peers`).
        hot: Of tiered features what GPU memory keeps: bytes, such as "4GiB", or a share of the rows below 1.
            None: a tenth.
        score: Of tiered features the method of `penstock.tiering.score` that chooses what is kept.
        below: Of tiered features where the others lie, "host", "host-cached" or "storage".
        cache: Of the features, in bytes or as "4GiB". None: the placement's default.
        embeddings: A .npy file for a table that trains: a row for each node of the types without features,
            in their order, drawn from N(0, 1). SparseAdam of the same `lr` changes it. Checkpoints hold it,
            and are folders then. None: features that a type lacks are zeros.
        embeddings_placement: Of this table, as of `penstock.open`. None: "storage".
        embeddings_cache: Of this table, in bytes or as "4GiB". None: the placement's default.
        graph_placement: Of the graph, as of `penstock.sampling.Graph.open`.
        device: "auto" (a GPU where there is one), "cpu", "cuda" or "cuda:1"; or a torch.device, whose name
            is kept.
        shuffle: Whether each epoch draws its seeds in another order.
        seed: Of weights, dropout, shares, shuffles and samples.
        prefetch: Batches that are sampled and gathered ahead.
        sms: Multiprocessors that sampling and gathering take at most; 0: all.
        sm_partition: Sampling and gathering have `sms` multiprocessors of their own, and the training the
            others (see `penstock.gnn.NeighborLoader`).
        checkpoint: File for checkpoints, made after each epoch. None: there are none.
        checkpoint_every: Steps between further checkpoints; 0 for none.
        resume: Go on from the checkpoint, if there is one.
        evaluate_every: Epochs between evaluations on the validation set; 0 for one after the last epoch.

    Raises:
        ValueError, TypeError: One sentence with the option, its value and what to give.
    """

    dataset: str | os.PathLike[str] = ""
    model: str = "sage"
    task: str = NODES
    fanout: Sequence[int] = DEFAULT_FANOUT
    layers: int | None = None
    hidden: int = 256
    heads: int | None = None
    dropout: float = 0.5
    batch_norm: bool = False
    batch: int = 1024
    epochs: int = 3
    lr: float = 0.003
    weight_decay: float = 0.01
    placement: str = "host"
    hot: int | str | float | None = None
    score: str | None = None
    below: str | None = None
    peers: bool = True
    cache: int | str | None = None
    embeddings: str | os.PathLike[str] | None = None
    embeddings_placement: str | None = None
    embeddings_cache: int | str | None = None
    graph_placement: str = "host"
    device: str = "auto"
    shuffle: bool = True
    seed: int = 0
    prefetch: int = 2
    sms: int = 0
    sm_partition: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 0
    resume: bool = False
    evaluate_every: int = 1

    def __post_init__(self) -> None:
        check_choice(self.model, MODELS, "model")
        check_choice(self.task, TASKS, "task")
        object.__setattr__(self, "fanout", _fanout(self.fanout, self.layers))
        object.__setattr__(self, "layers", len(self.fanout))
        for name in ("hidden", "batch", "epochs", "prefetch"):
            checked_count(name, getattr(self, name), 1)
        for name in ("checkpoint_every", "evaluate_every", "sms"):
            checked_count(name, getattr(self, name), 0)
        checked_count("seed", self.seed, 0, MOST_SEED)
        _check_number("dropout", self.dropout, lambda share: 0 <= share < 1, "give a share from 0 below 1")
        _check_number("lr", self.lr, lambda rate: rate > 0, "give a number above 0")
        _check_number("weight_decay", self.weight_decay, lambda decay: decay >= 0, "give 0 or more")
        object.__setattr__(self, "device", str(self.device))
        if re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device) is None:
            raise ValueError(f"device '{self.device}': give auto, cpu, cuda or cuda:N")
        if self.batch_norm and self.layers == 1:
            raise ValueError("batch_norm: a model of one layer has no hidden values: leave it out")
        self._check_heads()
        of_features = {name: getattr(self, name) for name in ("placement", "below", "cache")}
        checked(ArrayOptions, of_features)
        self._check_tiers()
        refuse_without_effect(EFFECTS, of_features)
        check_choice(self.graph_placement, PLACEMENTS, "graph_placement")
        of_loader = {name: getattr(self, name) for name in ("sms", "sm_partition", "device")}
        refuse_without_effect(MULTIPROCESSORS, of_loader)
        self._check_embeddings()
        if self.checkpoint is None and (self.resume or self.checkpoint_every):
            what = "resume" if self.resume else f"checkpoint_every {self.checkpoint_every}"
            raise ValueError(f"{what}: there is no checkpoint: name its file, too")

    def _check_tiers(self) -> None:
        if self.score is not None:
            check_choice(self.score, METHODS, "score")
        if self.placement == TIERED:
            if self.below is not None:
                check_choice(self.below, BELOW, "below")
            return
        for name in ("hot", "score", "below"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} {getattr(self, name)}: placement {self.placement} has no tiers: leave it out, "
                    "or choose tiered"
                )

    def _check_embeddings(self) -> None:
        if self.embeddings_placement is not None:
            check_choice(self.embeddings_placement, TABLE_PLACEMENTS, "embeddings_placement")
        for name in ("embeddings_placement", "embeddings_cache"):
            if self.embeddings is None and getattr(self, name) is not None:
                raise ValueError(
                    f"{name} {getattr(self, name)}: there are no embeddings: name their file, too"
                )

    def _check_heads(self) -> None:
        if self.model != "gat":
            if self.heads is not None:
                raise ValueError(
                    f"heads {self.heads}: model {self.model} has none: leave it out, or choose gat"
                )
            return
        heads = DEFAULT_HEADS if self.heads is None else self.heads
        checked_count("heads", heads, 1)
        if self.hidden % heads:
            raise ValueError(
                f"hidden {self.hidden}: it is no multiple of {heads} heads: give each head the same width"
            )
        object.__setattr__(self, "heads", heads)

    @property
    def checkpoint_path(self) -> Path | None:
        return None if self.checkpoint is None else Path(self.checkpoint)

    def fixed(self) -> dict[str, Any]:
        """What a checkpoint keeps, and another value of which it refuses."""
        given = {name: getattr(self, name) for name in _FIXED}
        return {**given, "fanout": list(self.fanout), "embeddings": self.embeddings is not None}

    def as_dict(self) -> dict[str, Any]:
        """All options as values that JSON has."""
        values = dataclasses.asdict(self)
        paths = {name: os.fspath(value) for name, value in values.items() if isinstance(value, os.PathLike)}
        return {**values, **paths, "fanout": list(self.fanout)}


def _fanout(given: Sequence[int], layers: int | None) -> tuple[int, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"fanout {given!r}: give a list of whole numbers, such as [15, 10, 5]")
    fanout = tuple(given)
    text = ",".join(map(str, fanout))
    if not fanout:
        raise ValueError("fanout: it is empty: give the neighbours of each hop, such as 15,10,5")
    for count in fanout:
        if whole_number(count) is None or (count < 1 and count != ALL):
            raise ValueError(f"fanout {text}: {count} neighbours: each hop needs 1 at least, or -1 for all")
    if layers is None:
        return fanout
    checked_count("layers", layers, 1)
    if len(fanout) == 1:
        return fanout * layers
    if len(fanout) != layers:
        raise ValueError(
            f"layers {layers}: fanout {text} has {len(fanout)} hops: give one for each layer, or one for all"
        )
    return fanout


def _check_number(name: str, value: float, fits: Callable[[float], bool], remedy: str) -> None:
    number = checked_number(name, value)
    if not (math.isfinite(number) and fits(number)):
        raise ValueError(f"{name} {value}: {remedy}")
