"""Models of PyTorch Geometric's layers, for sampled blocks.

Each layer computes only the nodes that the next one reads (see `blocks`). GCN takes the degrees for its
normalization from the edges that a layer sees, as PyG's `trim_to_layer` has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from penstock.gnn.training.blocks import Edges, layers_of
from penstock.gnn.training.options import NODES, Options


@dataclass(frozen=True)
class Shape:
    """What a model's numbers depend on, but for the options."""

    width: int
    """Of the features."""
    outputs: int
    """Classes, or the width of the embeddings that links are predicted from."""
    relations: int
    """Types of edges."""


def shape_for(options: Options, source: Any) -> Shape:
    outputs = source.classes if options.task == NODES else options.hidden
    return Shape(source.width, outputs, source.relations)


class SampledModel(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """Layers with rectifiers, dropout and, if asked for, batch normalization between them."""

    def __init__(self, options: Options, shape: Shape) -> None:
        super().__init__()
        hops = len(options.fanout)
        widths = [shape.width, *[options.hidden] * (hops - 1), shape.outputs]
        self.kind = options.model
        self.dropout = options.dropout
        self.layers = torch.nn.ModuleList(
            _layer(options, shape, widths[k], widths[k + 1], last=k + 1 == hops) for k in range(hops)
        )
        self.norms = torch.nn.ModuleList(
            BatchNorm(options.hidden) if options.batch_norm else torch.nn.Identity() for _ in range(hops - 1)
        )

    def forward(self, x: Any, edges: Edges, nodes_per_hop: list[int]) -> Any:
        """Values of a block's seeds.

        Args:
            x: float32, (nodes, width).
            edges: Of the block.
            nodes_per_hop: As the batch has it.

        Returns:
            float32, (seeds, outputs).
        """
        for number, part in enumerate(layers_of(nodes_per_hop, edges.per_hop)):
            if number:
                x = self.norms[number - 1](x).relu()
                x = functional.dropout(x, self.dropout, self.training)
            types = None if edges.types is None else edges.types[: part.edges]
            x = self._convolve(
                self.layers[number], x[: part.sources], edges.index[:, : part.edges], types, part.targets
            )
        return x

    def _convolve(self, layer: Any, x: Any, index: Any, types: Any, targets: int) -> Any:
        if self.kind == "gcn":
            # GCNConv knows no targets: it computes the sources' values, too.
            return layer(x, index)[:targets]
        pair = (x, x[:targets])
        if self.kind != "rgcn":
            return layer(pair, index)
        return layer(pair, index, index.new_zeros(index.shape[1]) if types is None else types)


class BatchNorm(torch.nn.BatchNorm1d):  # type: ignore[misc,unused-ignore]
    """Normalizes a single node, which has no variance, by the running mean and variance."""

    def forward(self, x: Any) -> Any:
        if len(x) > 1 or not self.training:
            return super().forward(x)
        return functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


def _layer(options: Options, shape: Shape, width: int, outputs: int, last: bool) -> Any:
    from torch_geometric import nn

    match options.model:
        case "sage":
            return nn.SAGEConv(width, outputs)
        case "gcn":
            return nn.GCNConv(width, outputs, add_self_loops=True, normalize=True)
        case "rgcn":
            return nn.RGCNConv(width, outputs, shape.relations)
    heads = options.heads or 1
    # The heads stand side by side, but in the last layer, whose outputs are their mean.
    part = outputs if last else outputs // heads
    return nn.GATConv(width, part, heads=heads, concat=not last, dropout=options.dropout)


def parameters_of(model: Any) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
