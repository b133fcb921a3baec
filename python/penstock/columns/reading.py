"""Files of tables as record batches: Parquet, ORC, CSV and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from penstock.columns.arrow import Progress, convert, type_of
from penstock.columns.delimited import LEAST_BLOCK, CsvForm, ReadAgainError, open_csv
from penstock.columns.layout import check_names
from penstock.columns.messages import one_line
from penstock.columns.types import ColumnType


def csv_form_of(memory: int) -> CsvForm:
    """Blocks of a sixteenth of what a conversion may take."""
    return CsvForm(max(LEAST_BLOCK, min(memory // 16, 64 << 20)))


def convert_files(
    paths: Sequence[Path], folder: Path, memory: int, threads: int = 0, progress: Progress | None = None
) -> None:
    """Write a Parquet, ORC, CSV or Arrow file, or several Parquet files, as one folder of columns.

    Raises:
        ValueError: One is damaged, of another kind, or has other columns than the first.
    """
    form = csv_form_of(memory)
    while True:
        try:
            schema, batches, rows = (
                read_file(paths[0], memory, threads, form)
                if len(paths) == 1
                else read_parquet_files(paths, memory, threads)
            )
            return convert(batches, schema, folder, rows, threads, progress)
        except ReadAgainError:
            for each in folder.iterdir():
                each.unlink()


def read_parquet_files(
    paths: Sequence[Path], memory: int, threads: int = 0
) -> tuple[Any, Iterator[Any], int]:
    """Schema, record batches and rows of Parquet files, one behind the other: see `read_file`. One is open at
    a time.

    Raises:
        ValueError: One is damaged, or its columns are not those of the first.
    """
    schema, _, rows = read_file(paths[0], memory, threads)
    types = _types_of(schema, paths[0])

    def batches_of(path: Path) -> tuple[Iterator[Any], int]:
        other, batches, its_rows = read_file(path, memory, threads)
        _check_same(types, _types_of(other, path), paths[0], path)
        return batches, its_rows

    rows += sum(batches_of(path)[1] for path in paths[1:])
    return schema, chain.from_iterable(batches_of(path)[0] for path in paths), rows


def _types_of(schema: Any, path: Path) -> dict[str, Any]:
    check_names(schema.names, str(path))
    return {field.name: type_of(field.type) for field in schema}


def _check_same(types: Mapping[str, Any], others: Mapping[str, Any], first: Path, path: Path) -> None:
    remedy = "give files that have the same columns, or write them anew"
    for here, there, mine, its in ((path, first, types, others), (first, path, others, types)):
        if missing := [name for name in mine if name not in its]:
            raise ValueError(f"open {path}: {here} has no column {missing[0]!r}, {there} has: {remedy}")
    for name, kind in types.items():
        if others[name] != kind:
            raise ValueError(
                f"open {path}: column {name!r} is {_shown(others[name])}, and {_shown(kind)} in {first}: "
                f"{remedy}"
            )


def _shown(kind: ColumnType | str) -> str:
    return kind.removeprefix("it is ").rpartition(":")[0] if isinstance(kind, str) else str(kind)


def read_file(
    path: Path, memory: int, threads: int = 0, csv_form: CsvForm | None = None
) -> tuple[Any, Iterator[Any], int]:
    """Schema, record batches of some MiB, and rows (0: not known) of a Parquet, ORC, CSV or Arrow file.

    Columns of texts may come with dictionaries that the schema does not have. One thread decodes if
    `threads` is 1. Batches of a CSV file raise ReadAgainError when they have changed `csv_form`.

    Raises:
        ValueError: It is damaged, or of another kind.
    """
    import pyarrow as pa

    try:
        match path.suffix.lower():
            case ".parquet" | ".pq":
                return _parquet(path, memory, threads)
            case ".orc":
                from pyarrow import orc

                stripes = orc.ORCFile(path)
                return (
                    stripes.schema,
                    _checked(path, (stripes.read_stripe(k) for k in range(stripes.nstripes))),
                    stripes.nrows,
                )
            case ".csv" | ".tsv" | ".gz":
                form = csv_form or csv_form_of(memory)
                schema, batches = open_csv(path, form, threads == 1)
                return schema, _checked(path, batches), 0
            case _:
                reader = _ipc(path)
                _ = reader.schema.names  # they may be no UTF-8
                return reader.schema, _checked(path, iter(reader)), 0
    except (pa.ArrowException, UnicodeDecodeError, OSError) as problem:
        raise ValueError(f"open {path}: pyarrow cannot read it: {one_line(problem)}: write it anew") from None


def _parquet(path: Path, memory: int, threads: int) -> tuple[Any, Iterator[Any], int]:
    """Pages are read as they are decoded: row groups, which may be of any size, are not held."""
    import pyarrow.parquet as pq

    facts = pq.read_metadata(path)
    schema = facts.schema.to_arrow_schema()
    file = pq.ParquetFile(
        path,
        read_dictionary=_coded_texts(schema, facts),
        buffer_size=max(1 << 16, min(memory // (16 * max(1, len(schema))), 1 << 20)),
        pre_buffer=False,
        page_checksum_verification=True,  # of pages that have one, at 4 GB/s a core
    )
    batches = file.iter_batches(_rows_for(schema, memory), use_threads=threads != 1)
    return schema, _checked(path, batches), facts.num_rows


def _coded_texts(schema: Any, facts: Any) -> list[str]:
    """Columns of texts that are codes in the whole file, to be read as such. A text that is spelled out takes
    4 bytes and its letters, a code less; to make codes of texts is left to `_Column`, which is faster.
    """
    import pyarrow as pa

    texts = {field.name for field in schema if field.type == pa.string()}
    for group in range(facts.num_row_groups):
        chunks = facts.row_group(group)
        for number in range(facts.num_columns) if texts else ():
            chunk = chunks.column(number)
            if chunk.path_in_schema in texts and chunk.total_uncompressed_size >= 4 * chunk.num_values:
                texts.remove(chunk.path_in_schema)
    return sorted(texts)


def _checked(path: Path, batches: Iterable[Any]) -> Iterator[Any]:
    import pyarrow as pa

    try:
        yield from batches
    except (pa.ArrowException, UnicodeDecodeError, OSError) as problem:
        raise ValueError(f"open {path}: pyarrow cannot read it: {one_line(problem)}: write it anew") from None


def _ipc(path: Path) -> Any:
    import pyarrow as pa

    source = pa.memory_map(str(path))
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        return pa.ipc.open_stream(source)
    return pa.RecordBatchReader.from_batches(
        file.schema, (file.get_batch(k) for k in range(file.num_record_batches))
    )


def _rows_for(schema: Any, memory: int) -> int:
    """Of a batch: an eighth of what a conversion may take, where a value takes 16 bytes."""
    return max(1024, min(1 << 20, memory // max(1, 8 * 16 * len(schema))))
