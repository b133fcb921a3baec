"""PyG's two stores over arrays."""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr, TensorAttr
from torch_geometric.data import FeatureStore as _FeatureStore
from torch_geometric.data import GraphStore as _GraphStore
from torch_geometric.data.graph_store import EdgeLayout

from penstock.arguments import reading
from penstock.arrays import Array, from_tensor, gather_all
from penstock.arrays.foreign import dense

if TYPE_CHECKING:
    from collections.abc import Callable

_Key = tuple[Any, Any]


class FeatureStore(_FeatureStore):
    """Features by group and name (`torch_geometric.data.TensorAttr`), each an `Array`.

    What is put may be an `Array` itself, or a tensor or NumPy array, which becomes one over its memory with
    `placement`. An index beside a tensor stores into rows of an array that is there; with one that is not,
    the index must number all rows once. Rows come on the array's device; a whole tensor (index None) is the
    array's memory where it has one, else a copy.

    placement, device: of tensors that are put, as for `penstock.from_tensor`.

    PyG's loaders put no features of edges into batches. Of several types these are in the store by the type
    of the edges, for `store[edge_type, name, batch[edge_type].e_id]`. Without types a loader would take them
    by the numbers of nodes: they are refused; keep them as an array, and take `array[batch.e_id]`.

    A store is pickled as paths, and where its features are in memory by value; for workers that are started
    with spawn as one copy in shared memory, which all of them read. The features themselves stay where they
    are.
    """

    def __init__(self, placement: str = "host", device: str = "auto", tensor_attr_cls: Any = None) -> None:
        super().__init__(tensor_attr_cls)
        self.__dict__["_arrays"] = _Arrays()
        self.__dict__["_where"] = (placement, device)

    def array(self, group_name: Any, attr_name: str) -> Array:
        """KeyError for features that were not put."""
        return self._array(TensorAttr(group_name, attr_name, None))

    def _array(self, attr: TensorAttr) -> Array:
        array: Array | None = self._arrays.get(_key(attr))
        if array is None:
            raise KeyError(f"there are no features {attr.attr_name!r} of {attr.group_name!r}: put them first")
        return array

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        _refuse_edges(attr, self._arrays)
        key = _key(attr)
        if isinstance(tensor, Array):
            if not _is_whole(attr.index):
                raise ValueError(f"{tensor!r}: an array is put as a whole, with index None")
            self._arrays[key] = tensor
            return True
        what = f"put features {attr.attr_name!r} of {attr.group_name!r}"
        values = _as_tensor(tensor, what)
        with reading(what, values, attr.index):
            return self._put_values(values, attr, key)

    def _put_values(self, values: Tensor, attr: TensorAttr, key: _Key) -> bool:
        placement_device = self._where
        if not _is_whole(attr.index):
            index = _numbers(attr.index, self._arrays.get(key, values))
            if key in self._arrays:
                self._arrays[key].scatter(index, values)
                return True
            values = _in_order(values, index)
        self._arrays[key] = from_tensor(values.contiguous(), placement_device[0], device=placement_device[1])
        return True

    def _get_tensor(self, attr: TensorAttr) -> Any:
        array = self._array(attr)
        if _is_whole(attr.index):
            return _whole(array)
        if isinstance(attr.index, slice):
            return array[attr.index]
        return array.gather(_numbers(attr.index, array))

    def _multi_get_tensor(self, attrs: list[TensorAttr]) -> list[Any]:
        """In one launch for each device: see `penstock.gather_all`."""
        wanted = [(self._array(attr), attr.index) for attr in attrs]
        taken: dict[int, Any] = {}
        of_device: dict[Any, list[int]] = {}
        for k, (array, index) in enumerate(wanted):
            if _is_whole(index):
                taken[k] = _whole(array)
            else:
                of_device.setdefault(array.device, []).append(k)
        for places in of_device.values():
            rows = gather_all([(wanted[k][0], _numbers(wanted[k][1], wanted[k][0])) for k in places])
            taken.update(zip(places, rows, strict=True))
        return [taken[k] for k in range(len(wanted))]

    def update_tensor(self, tensor: Any, *args: Any, **keywords: Any) -> bool:
        """Stores into the rows of features that are there; of another shape, as a whole, puts them anew."""
        attr = self._tensor_attr_cls.cast(*args, **keywords)
        array = self._array(attr)
        if not _is_whole(attr.index) or tuple(tensor.shape) == array.shape:
            index = slice(None) if _is_whole(attr.index) else attr.index
            array.scatter(_numbers(index, array), torch.as_tensor(tensor))
            return True
        return self._remove_tensor(attr) and self._put_tensor(tensor, attr)

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        return self._arrays.pop(_key(attr), None) is not None

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        array = self._array(attr)
        if _is_whole(attr.index):
            return array.shape
        return (len(_numbers(attr.index, array)), *array.row_shape)

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        return [self._tensor_attr_cls.cast(*key) for key in self._arrays]


class _Arrays(dict[_Key, Array]):
    """Arrays in memory are pickled as the tensors that they are over, with what was stored since: by value,
    or, for another process of this machine, in memory that all such processes share."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.shared: dict[_Key, Tensor] = {}  # copies that other processes read

    def __reduce__(self) -> Any:
        return _arrays_of, ({key: _portable(array, _values_of) for key, array in self.items()},)

    def reduce_for_process(self) -> Any:
        """torch moves a tensor into shared memory as it is pickled for a process. The arrays' own stay where
        they are (others may have their addresses): it is a copy that moves, the same one for all processes as
        long as nothing is stored."""
        self.shared = {key: tensor for key, tensor in self.shared.items() if key in self}

        def share(key: _Key, array: Array) -> Any:
            values = _values_of(array)
            there = self.shared.get(key)
            if there is None or not _same_bytes(there, values):
                # CUDA shares what torch's allocator has, and no other memory
                there = values.clone() if values.is_cuda else values.clone().share_memory_()
                self.shared[key] = there
            return there

        return _arrays_of, ({key: _portable(array, partial(share, key)) for key, array in self.items()},)


ForkingPickler.register(_Arrays, _Arrays.reduce_for_process)


def _same_bytes(one: Tensor, other: Tensor) -> bool:
    if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
        return False
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def _values_of(array: Array) -> Tensor:
    """All of an array in memory, in place."""
    array.flush()
    borrowed = array.opened.memory
    if borrowed is None:
        whole: Tensor = array.tensor()
        return whole
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of NumPy's read-only memory: nothing is stored into it
        return torch.as_tensor(borrowed.memory)


def _portable(array: Array, values_of: Callable[[Array], Tensor]) -> Any:
    if array.path is not None:
        return array
    return values_of(array), array.placement, array.opened.device


def _arrays_of(given: dict[_Key, Any]) -> _Arrays:
    return _Arrays(
        (key, one if isinstance(one, Array) else from_tensor(one[0], one[1], device=one[2]))
        for key, one in given.items()
    )


def _as_tensor(given: Any, what: str) -> Tensor:
    """TypeError for what is no tensor with elements in memory."""
    if not isinstance(given, (Tensor, np.ndarray)):
        raise TypeError(f"{what}: it is a {type(given).__name__}: give a tensor, a NumPy array or an Array")
    try:
        return dense(torch.as_tensor(given), f"{what}: it")
    except TypeError as problem:
        raise TypeError(f"{what}: {str(problem).partition('. ')[0]}: give numbers") from None


def _key(attr: TensorAttr) -> _Key:
    return (attr.group_name, attr.attr_name)


def _refuse_edges(attr: TensorAttr, there: _Arrays) -> None:
    """ValueError for features of edges that a loader would take by the numbers of nodes, as it takes all that
    is in a store without types. In one with types it leaves those of edges out."""
    groups = {group for group, _ in there} | {attr.group_name}
    named = attr.group_name is None and ("edge" in str(attr.attr_name) or attr.attr_name == "e_id")
    if named or (None in groups and any(isinstance(group, tuple) for group in groups)):
        raise ValueError(
            f"put features {attr.attr_name!r} of {attr.group_name!r}: in a store without node types PyG's "
            "loaders take all features by the numbers of nodes: keep those of edges as an array, and take "
            "array[batch.e_id] for each batch"
        )


def _is_whole(index: Any) -> bool:
    return index is None or (isinstance(index, slice) and index == slice(None))


def _numbers(index: Any, of: Any) -> Any:
    if isinstance(index, slice):
        return torch.from_numpy(np.arange(*index.indices(len(of)), dtype=np.int64))
    numbers = torch.as_tensor(index)
    if numbers.dtype == torch.bool:
        return numbers.nonzero().reshape(-1)
    return numbers.reshape(-1)


def _in_order(values: Tensor, index: Tensor) -> Tensor:
    """values[k] as row index[k]."""
    if not torch.equal(index.sort().values, torch.arange(len(values), device=index.device)):
        raise ValueError(
            f"an index of {len(index)} rows for features that are not there: put them as a whole first, "
            "index None"
        )
    ordered = torch.empty_like(values)
    ordered[index] = values
    return ordered


def _whole(array: Array) -> Any:
    try:
        return array.tensor()
    except ValueError:  # behind a cache, or not aligned
        return array[:]


class GraphStore(_GraphStore):
    """Edges by type and layout (`torch_geometric.data.EdgeAttr`): pairs of tensors, or of one-dimensional
    arrays, for instance of files that are mapped (`placement="host"`, `device="cpu"`), which samplers read in
    place."""

    def __init__(self, edge_attr_cls: Any = None) -> None:
        super().__init__(edge_attr_cls)
        self.__dict__["_edges"] = {}

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        what = f"put {edge_attr.layout.value} edges of {edge_attr.edge_type!r}"
        pair = tuple(edge_index)
        if len(pair) != 2 or any(len(getattr(side, "shape", ())) != 1 for side in pair):
            raise ValueError(f"{what}: an edge index is a pair of tensors or arrays of one dimension")
        with reading(what, *pair):
            _check_layout(what, edge_attr, *pair)
        self._edges[_edge_key(edge_attr)] = (dataclasses.replace(edge_attr), pair)
        return True

    def _get_edge_index(self, edge_attr: EdgeAttr) -> Any:
        found = self._edges.get(_edge_key(edge_attr))
        if found is None:
            return None
        with reading(f"get {edge_attr.layout.value} edges of {edge_attr.edge_type!r}", *found[1]):
            return tuple(_side(side) for side in found[1])

    def sides(self, edge_type: Any, layout: EdgeLayout) -> Any:
        """The pair that was put with this type and layout, as it was put: tensors or arrays. None: none."""
        found = self._edges.get((edge_type, layout))
        return None if found is None else found[1]

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        return self._edges.pop(_edge_key(edge_attr), None) is not None

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        return [dataclasses.replace(attr) for attr, _ in self._edges.values()]


def _edge_key(attr: EdgeAttr) -> Any:
    """An edge type has one edge index of a layout, whatever else is given of it."""
    return (attr.edge_type, attr.layout)


def _check_layout(what: str, attr: EdgeAttr, row: Any, column: Any) -> None:
    """ValueError for two sides that are no graph together: samplers believe them, and read beyond their ends.
    The numbers of arrays in files are not looked at, but for pointers."""
    for side in (row, column):
        kind = str(side.dtype).removeprefix("torch.")
        if not kind.startswith(("int", "uint")):
            raise ValueError(f"{what}: numbers of type {kind}: give integers")
    nodes = (None, None) if attr.size is None else tuple(attr.size)
    if any(count is not None and count < 0 for count in nodes):
        raise ValueError(f"{what}: size {attr.size}: give the numbers of source and target nodes")
    if attr.layout == EdgeLayout.COO:
        if len(row) != len(column):
            raise ValueError(f"{what}: {len(row)} sources and {len(column)} targets: give as many of both")
        _check_nodes(f"{what}: source", row, nodes[0])
        _check_nodes(f"{what}: target", column, nodes[1])
        if attr.is_sorted and not isinstance(column, Array) and _decreases(_side(column)):
            raise ValueError(f"{what}: its targets decrease: leave is_sorted out, or sort by them")
        return
    by_column = attr.layout == EdgeLayout.CSC
    pointers, ends = (_side(column), row) if by_column else (_side(row), column)
    own, others = (nodes[1], nodes[0]) if by_column else nodes
    if own is not None and len(pointers) != own + 1:
        raise ValueError(f"{what}: {len(pointers)} pointers for {own} nodes: give one more than nodes")
    if len(pointers) == 0 or int(pointers[0]) != 0 or int(pointers[-1]) != len(ends):
        raise ValueError(f"{what}: its pointers do not go from 0 to {len(ends)}, the number of its edges")
    if _decreases(pointers):
        raise ValueError(f"{what}: its pointers decrease: give the first edge of each node, in order")
    _check_nodes(f"{what}: {'source' if by_column else 'target'}", ends, others)


def _check_nodes(what: str, numbers: Any, count: int | None) -> None:
    if isinstance(numbers, Array) or len(numbers) == 0:
        return
    least, most = (int(n) for n in torch.aminmax(_side(numbers).to(torch.int64)))
    if least < 0 or (count is not None and most >= count):
        wrong = least if least < 0 else most
        there = "from 0 on" if count is None else f"from 0 to {count - 1}"
        raise ValueError(f"{what} {wrong}: it is no node: give numbers {there}")


def _decreases(numbers: Tensor) -> bool:
    return bool((numbers[1:] < numbers[:-1]).any())


def _side(side: Any) -> Tensor:
    return _whole(side) if isinstance(side, Array) else torch.as_tensor(side)
