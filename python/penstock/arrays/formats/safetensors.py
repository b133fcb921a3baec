"""Tensors of a safetensors file, and of a model that is spread over several by an index."""

from __future__ import annotations

import errno
import json
import struct
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from penstock.arrays.dtypes import dtype_named
from penstock.arrays.formats.place import Layout, checked, chosen
from penstock.arrays.messages import line_of, shown, shown_path, system_error

_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32",
    "I32": "int32", "U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32",
    "F64": "float64", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
}  # fmt: skip
_MAX_HEADER = 100 << 20  # safetensors' own limit


def find(path: str, name: str | None) -> Layout:
    length, tensors = _header(path)
    name = chosen(path, name, list(tensors), "tensors")
    return _tensor(path, name, tensors[name], 8 + length)


def _tensor(path: str, name: str, about: Any, begins: int) -> Layout:
    try:
        shape, kind, (begin, end) = about["shape"], about["dtype"], about["data_offsets"]
        numbers = [*shape, begin, end]
    except (KeyError, TypeError, ValueError):
        numbers, kind = [None], None
    if not all(type(n) is int and n >= 0 for n in numbers) or not isinstance(kind, str):
        raise _malformed(path, f"tensor {shown(name)} is {shown(about)}")
    if kind not in _TYPES:
        raise ValueError(
            f"open {shown_path(path)}: tensor {shown(name)} of type {shown(kind)}: there is no such array "
            f"type: store it in one of {', '.join(_TYPES)}"
        )
    element = dtype_named(_TYPES[kind])
    found = Layout(path, tuple(shape), element, begins + begin, name, element)
    if found.nbytes != end - begin:
        raise _malformed(
            path,
            f"it gives {shown(end - begin)} bytes to tensor {shown(name)}, {element} of shape {shown(shape)}",
        )
    return checked(found)


def _header(path: str) -> tuple[int, dict[str, Any]]:
    """Its length, and the tensors in it."""
    with Path(path).open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else _MAX_HEADER + 1
        if length > _MAX_HEADER:
            raise ValueError(
                f"open {shown_path(path)}: it is no safetensors file: its first 8 bytes are no header's "
                "length: write it with safetensors"
            )
        text = file.read(length)
    try:
        header = json.loads(text)
        if not isinstance(header, dict):
            raise ValueError(f"{shown(header)} is no table of tensors")
        return length, {key: value for key, value in header.items() if key != "__metadata__"}
    except (ValueError, AttributeError, RecursionError) as problem:
        raise _malformed(path, line_of(problem)) from None


def _malformed(path: str, problem: str) -> ValueError:
    return ValueError(
        f"open {shown_path(path)}: its safetensors header is malformed: {problem}: write it with safetensors"
    )


def find_sharded(path: str, name: str | None) -> Layout:
    """By `model.safetensors.index.json`: the tensor lies in one of the files beside it, in place."""
    where = f"open {shown_path(path)}"
    try:
        shards = json.loads(Path(path).read_bytes())["weight_map"]
        named = isinstance(shards, dict) and all(isinstance(shard, str) for shard in shards.values())
    except (ValueError, KeyError, TypeError, RecursionError):
        named = False
    if not named:
        raise ValueError(
            f"{where}: it is no index of a sharded model: it has no weight_map of tensors to files: name a "
            "model.safetensors.index.json"
        )
    name = chosen(path, name, list(shards), "tensors")
    shard = PurePosixPath(shards[name])
    if shard.is_absolute() or ".." in shard.parts or "\0" in str(shard):
        raise ValueError(
            f"{where}: tensor {shown(name)} is in {shown(str(shard))}: name a file beside the index"
        )
    if shard.suffix != ".safetensors":
        raise ValueError(
            f"{where}: tensor {shown(name)} is in {shown(str(shard))}: convert the model to safetensors first"
        )
    beside = str(Path(path).parent / shard)
    if not Path(beside).is_file():
        raise system_error(
            f"{where}: tensor {shown(name)} is in {shown(str(shard))}, and there is no such file: put it "
            "beside the index",
            errno.ENOENT,
        )
    try:
        return replace(find(beside, name), path=path, data=beside)
    except ValueError as problem:
        text = str(problem).removeprefix(f"open {shown_path(beside)}: ")
        raise ValueError(f"{where}: {shown(str(shard))}: {text}") from None
