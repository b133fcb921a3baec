"""What the loaders give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from penstock.sampling.sample import EdgeType

_Own = TypeVar("_Own", bound="_Tensors")


class _Tensors:
    """A dataclass whose fields are tensors, or dictionaries with tensors."""

    def tensors(self) -> list[Tensor]:
        """All that it has."""
        return list(_inside(self._fields()))

    def _fields(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}  # type: ignore[arg-type]

    def to(self: _Own, device: Any) -> _Own:
        """The same with its tensors on another device."""
        return type(self)(**_changed(self._fields(), lambda each: each.to(device)))

    def follow(self, stream: torch.cuda.Stream) -> None:
        """Keeps the memory from others until what is on this stream has ended."""
        for each in self.tensors():
            if each.is_cuda:
                each.record_stream(stream)


def _inside(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _inside(each)


def _changed(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, dict):
        return {name: _changed(each, change) for name, each in value.items()}
    return change(value) if isinstance(value, Tensor) else value


@dataclass
class Batch(_Tensors):
    """A sampled block with what the training needs of it. Tensors lie on the loader's device.

    Attributes:
        x: Features of the nodes, shape (nodes, ...), or None.
        edge_index: int64, shape (2, edges): local numbers of sources and targets.
        n_id: int64, shape (nodes,): numbers in the graph; the seeds first, then what each hop found.
        e_id: int64, shape (edges,): edge ids.
        batch_size: How many seeds there are.
        y: Labels of the seeds, shape (batch_size, ...), or None.
        nodes_per_hop: Of the seeds, and of each hop, how many nodes are new.
        edges_per_hop: Of each hop, how many edges were drawn.
        edge_attr: Features of the edges, shape (edges, ...), or None.
        edge_type: int64, shape (edges,): the relation of each edge, or None.
        features: Further features of the nodes by name.
        batch: int64, shape (nodes,): of a disjoint sample the seed that each node belongs to, of links the
            link, else None.
        edge_label_index: Of links, int64, shape (2, pairs): local numbers of their ends, else None.
        edge_label: Of links, shape (pairs, ...): float32, 1 for those that were given and 0 for those that
            were drawn; or the labels that were given (see LinkLoader). Else None.
        edge_label_time: Of links with times, int64, shape (pairs,), else None.
        number: Which batch of the epoch it is, from 0.
    """

    x: Any
    edge_index: Tensor
    n_id: Tensor
    e_id: Tensor
    batch_size: int
    nodes_per_hop: list[int]
    edges_per_hop: list[int]
    y: Any = None
    edge_attr: Tensor | None = None
    edge_type: Tensor | None = None
    features: dict[str, Tensor] = field(default_factory=dict)
    batch: Tensor | None = None
    edge_label_index: Tensor | None = None
    edge_label: Tensor | None = None
    edge_label_time: Tensor | None = None
    number: int = 0


@dataclass
class HeteroBatch(_Tensors):
    """The same of several types: dictionaries by node type, or by edge type (source type, name, target type).

    Attributes:
        x_dict: Features of the nodes, of the types that have some.
        edge_index_dict: int64, shape (2, edges): local numbers of sources and targets, each among the nodes
            of its type.
        n_id_dict, e_id_dict, nodes_per_hop_dict, edges_per_hop_dict, edge_attr_dict, batch_dict: As of Batch.
        features_dict: Further features of the nodes, by type and name.
        input_type: The type of the seeds; of links their edge type.
        batch_size: How many seeds there are; of links, how many pairs.
        y, edge_label_index, edge_label, edge_label_time, number: As of Batch.
    """

    x_dict: dict[str, Tensor]
    edge_index_dict: dict[EdgeType, Tensor]
    n_id_dict: dict[str, Tensor]
    e_id_dict: dict[EdgeType, Tensor]
    input_type: str | EdgeType
    batch_size: int
    nodes_per_hop_dict: dict[str, list[int]]
    edges_per_hop_dict: dict[EdgeType, list[int]]
    y: Any = None
    edge_attr_dict: dict[EdgeType, Tensor] = field(default_factory=dict)
    features_dict: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    batch_dict: dict[str, Tensor] | None = None
    edge_label_index: Tensor | None = None
    edge_label: Tensor | None = None
    edge_label_time: Tensor | None = None
    number: int = 0

    def to_hetero_data(self) -> Any:
        """As a torch_geometric.data.HeteroData, with the names that PyG's loaders give."""
        from torch_geometric.data import HeteroData

        data = HeteroData()
        for kind, nodes in self.n_id_dict.items():
            data[kind].n_id, data[kind].num_nodes = nodes, len(nodes)
            data[kind].num_sampled_nodes = self.nodes_per_hop_dict[kind]
            own = {"x": self.x_dict.get(kind), **self.features_dict.get(kind, {})}
            own["batch"] = None if self.batch_dict is None else self.batch_dict[kind]
            data[kind].update({name: each for name, each in own.items() if each is not None})
        for edge_type, index in self.edge_index_dict.items():
            data[edge_type].edge_index, data[edge_type].e_id = index, self.e_id_dict[edge_type]
            data[edge_type].num_sampled_edges = self.edges_per_hop_dict[edge_type]
            if edge_type in self.edge_attr_dict:
                data[edge_type].edge_attr = self.edge_attr_dict[edge_type]
        asked = {
            name: getattr(self, name) for name in ("y", "edge_label_index", "edge_label", "edge_label_time")
        }
        data[self.input_type].update({name: each for name, each in asked.items() if each is not None})
        if isinstance(self.input_type, str):
            data[self.input_type].batch_size = self.batch_size
        return data
