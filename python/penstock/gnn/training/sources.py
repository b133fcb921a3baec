"""What a training reads: the loaders of a dataset's splits."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from penstock.arrays import Array, open_array
from penstock.arrays.tiers import TIERED
from penstock.gnn import LinkLoader, NeighborLoader
from penstock.gnn.training.options import NODES, RGCN, Options
from penstock.gnn.training.ranks import Ranks
from penstock.gnn.training.splits import TRAIN, Ids, Splits
from penstock.sampling import Graph
from penstock.tiering import score, tiered

DEFAULT_HOT = 0.1
_LOGGER = logging.getLogger("penstock")
_COMPARED = 1 << 16  # ids of the training set that distinguish datasets of one size


class Source(Protocol):
    """Loaders, and the sizes that a model takes from the data.

    Attributes:
        width: Of the features.
        classes: Of the labels; not read for links.
        relations: Types of edges; batches for rgcn have `edge_type` where there is more than one.
        unfeatured: Numbers of the nodes without features, ascending; read with `options.embeddings` alone.
    """

    width: int
    classes: int
    relations: int
    unfeatured: Sequence[range]

    def identity(self) -> dict[str, Any]:
        """Values that differ between data: a checkpoint keeps them. Numbers and text."""

    def loader(self, split: str) -> Any:
        """A loader of batches like `penstock.gnn.Batch`, of this process's share of a split.

        That of "train" has what NeighborLoader has: `len`, `set_epoch`, `state_dict`, `load_state_dict`,
        `stats` and, if it records spans, `timeline`; it gives each process as many batches. The others need
        only be iterable, more than once, with the same batches.
        """

    def close(self) -> None:
        """Ends the loaders."""


OpenSource = Callable[[Options, Ranks], Source]


class DatasetSource:
    """A dataset of `penstock.gnn.data`, sampled by the loaders of `penstock.gnn`."""

    def __init__(self, options: Options, ranks: Ranks, splits: Splits) -> None:
        self._options, self._ranks, self._splits = options, ranks, splits
        self._loaders: list[Any] = []
        self._dataset = splits.dataset
        self.width, self.classes = int(self._dataset.width), int(self._dataset.classes)
        self.relations = max(1, len(self._dataset.edge_types))
        types = self._dataset.node_types
        self.unfeatured: Sequence[range] = [
            types[name] for name in types if name in self._dataset.without_features
        ]
        device = str(ranks.device)
        self._graph = Graph.open(self._dataset.folder, placement=options.graph_placement, device=device)
        self._features = self._opened_features(device)
        self._edge_types: Array | None = None
        if options.model == RGCN and self.relations > 1:
            self._edge_types = open_array(
                self._dataset.relations, placement=options.graph_placement, device=device
            )

    def identity(self) -> dict[str, Any]:
        ids = self._splits[TRAIN]
        return {
            "nodes": int(self._dataset.nodes),
            "edges": int(self._dataset.edges),
            "width": self.width,
            "classes": self.classes,
            "relations": self.relations,
            "train": len(ids),
            "train_crc32": zlib.crc32(np.ascontiguousarray(ids[:_COMPARED]).tobytes()),
        }

    def loader(self, split: str) -> Any:
        ids = self._splits[split]
        if split == TRAIN and self._options.shuffle:
            ids = ids[np.random.default_rng(self._options.seed).permutation(len(ids))]
        share = self._ranks.share(ids, equal=split == TRAIN)
        return self._loader(share, split) if len(share) else ()

    def close(self) -> None:
        # Graph and features are freed with the last loader: its threads may still read them.
        for loader in self._loaders:
            if hasattr(loader, "close"):
                loader.close()

    def _opened_features(self, device: str) -> Array:
        options, path = self._options, self._dataset.features
        if options.placement != TIERED:
            return open_array(path, placement=options.placement, device=device, cache=options.cache)
        method = options.score or "weighted_reverse_pagerank"
        fanout = options.fanout if method == "frequency" else None
        ids = self._splits[TRAIN]
        scores = score(self._graph, method, train_ids=ids, fanout=fanout, seed=options.seed)
        hot = DEFAULT_HOT if options.hot is None else options.hot
        below = options.below or "host"
        with self._ranks.peers() if options.peers else nullcontext() as peers:
            made = tiered(path, scores, hot, below=below, device=device, cache=options.cache, peers=peers)
        for note in made.opened.notes if self._ranks.first else ():
            _LOGGER.warning(note)
        return made

    def _loader(self, ids: Ids, split: str) -> Any:
        options = self._options
        common: dict[str, Any] = {
            "shuffle": split == TRAIN and options.shuffle,
            "seed": options.seed + self._ranks.rank,
            "device": str(self._ranks.device),
            "prefetch": options.prefetch,
            "sms": options.sms,
            "sm_partition": options.sm_partition,
            "edge_type": self._edge_types,
        }
        given = (self._graph, self._features)
        if options.task == NODES:
            loader: Any = NeighborLoader(
                *given, ids, options.fanout, options.batch, labels=self._splits.labels, **common
            )
        else:
            edges = self._edges_into(ids, split)
            loader = LinkLoader(*given, edges, options.fanout, options.batch, **common)
        self._loaders.append(loader)
        return loader

    def _edges_into(self, ids: Ids, split: str) -> npt.NDArray[np.int64]:
        """One edge into each of the nodes that have some, drawn by the seed: (2, edges), sources and targets.

        For training, a node that has none gets one from itself, so that the processes have as many.
        """
        pointers = np.load(self._dataset.pointers, mmap_mode="r")
        neighbors = np.load(self._dataset.neighbors, mmap_mode="r")
        begin, end = (np.asarray(pointers[ids + after], dtype=np.int64) for after in (0, 1))
        draws = np.random.default_rng([self._options.seed, self._ranks.rank, len(split)])
        chosen = begin + (draws.random(len(ids)) * (end - begin)).astype(np.int64)
        sources = ids.copy()
        some = end > begin
        sources[some] = neighbors[chosen[some]]
        edges = np.stack([sources, ids])
        return edges if split == TRAIN else edges[:, some]
