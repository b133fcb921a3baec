"""What a file is: by its first bytes, and by its ending where they say nothing."""

from __future__ import annotations

import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path

ENDINGS = {
    ".npy": "npy", ".npz": "npz", ".safetensors": "safetensors", ".arrow": "arrow", ".feather": "arrow",
    ".arrows": "arrow", ".ipc": "arrow", ".parquet": "parquet", ".pq": "parquet", ".h5": "hdf5",
    ".hdf5": "hdf5", ".he5": "hdf5", ".hdf": "hdf5", ".nc": "hdf5", ".zarr": "zarr",
}  # fmt: skip
SHARDED = ".safetensors.index.json"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_NUMPY = b"\x93NUMPY"
_MAGICS = {_NUMPY: "npy", b"ARROW1": "arrow", b"PAR1": "parquet", _HDF5: "hdf5"}
_MAX_USER_BLOCK = 1 << 20


@dataclass(frozen=True)
class _Foreign:
    """A format that holds no array that could be read where it lies."""

    what: str
    remedy: str
    endings: tuple[str, ...] = ()
    magics: tuple[bytes, ...] = ()


_UNPACK = "unpack it, and open what was in it"
_SAVE = "and write the array with numpy.save"
_TORCH = _Foreign(
    "a PyTorch checkpoint",
    "read it with torch.load, and write its tensors with safetensors.torch.save_file",
    (".pt", ".pth", ".ckpt"),
)
_ZIP = _Foreign("a ZIP archive", _UNPACK, (".zip",), (b"PK\x03\x04", b"PK\x05\x06"))
_FOREIGN = (
    _TORCH,
    _ZIP,
    _Foreign("a gzip file", _UNPACK, (".gz", ".tgz"), (b"\x1f\x8b\x08",)),
    _Foreign("a bzip2 file", _UNPACK, (".bz2",), tuple(b"BZh%d1AY&SY" % n for n in range(1, 10))),
    _Foreign("an xz file", _UNPACK, (".xz", ".lzma"), (b"\xfd7zXZ\x00",)),
    _Foreign("a Zstandard file", _UNPACK, (".zst",), (b"\x28\xb5\x2f\xfd",)),
    _Foreign("an LZ4 file", _UNPACK, (".lz4",), (b"\x04\x22\x4d\x18",)),
    _Foreign("a 7z archive", _UNPACK, (".7z",), (b"7z\xbc\xaf\x27\x1c",)),
    _Foreign("a tar archive", _UNPACK, (".tar",)),
    _Foreign("a pickle", f"load it where you trust it, {_SAVE}", (".pkl", ".pickle", ".joblib")),
    _Foreign("text", f"read it with numpy.loadtxt or pandas.read_csv, {_SAVE}", (".csv", ".tsv", ".txt")),
    _Foreign("JSON text", f"read it with json.load, {_SAVE}", (".json", ".jsonl")),
    _Foreign("a MATLAB file", f"read it with scipy.io.loadmat, {_SAVE}", (".mat",), (b"MATLAB 5.0 MAT-",)),
    _Foreign("an HDF4 file", "convert it with h4toh5", (), (b"\x0e\x03\x13\x01",)),
    _Foreign("a classic netCDF file", "convert it with nccopy -k nc4", (), (b"CDF\1", b"CDF\2", b"CDF\5")),
    _Foreign("a Feather file of version 1", f"read it with pyarrow.feather, {_SAVE}", (), (b"FEA1",)),
    _Foreign("an ORC file", f"read it with pyarrow.orc, {_SAVE}", (".orc",), (b"ORC\x11",)),
    _Foreign("an Avro file", f"read it with fastavro, {_SAVE}", (".avro",), (b"Obj\x01",)),
    _Foreign("a GGUF model", "convert it to safetensors", (".gguf",), (b"GGUF",)),
    _Foreign("an ONNX model", "convert it to safetensors", (".onnx",)),
    _Foreign("a file of TFRecords", f"read it with TensorFlow, {_SAVE}", (".tfrecord", ".tfrecords")),
    _Foreign("an SQLite database", f"read it with sqlite3, {_SAVE}", (".sqlite",), (b"SQLite format 3",)),
    _Foreign("a FITS file", f"read it with astropy.io.fits, {_SAVE}", (".fits",), (b"SIMPLE  =",)),
    _Foreign(
        "an image",
        f"read it with an image library, {_SAVE}",
        (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".webp"),
        (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe1", b"II*\0", b"MM\0*", b"GIF8"),
    ),
    _Foreign("a pointer of Git LFS", "fetch the file with git lfs pull", (), (b"version https://git-lfs",)),
    _Foreign("an HTML page", "download the file again", (".html",), (b"<!DOCTYPE html", b"<!doctype html")),
    _Foreign("a PDF file", "open the data that it was made of", (".pdf",), (b"%PDF-",)),
)


def kind_of(path: str, typed: bool, described: bool) -> str:
    """A format of ENDINGS, "sharded", or "raw".

    typed: the user says what the elements are. described: and at which byte they begin, so that only an
    ending that is a format's says otherwise. ValueError for what no array can be opened in.
    """
    if Path(path).is_dir():
        return "zarr"
    if path.endswith(SHARDED):
        return "sharded"
    ending = ENDINGS.get(Path(path).suffix.lower(), "raw")
    if stat.S_ISBLK(Path(path).stat().st_mode):
        return "raw"
    if ending == "raw" and described:
        return "raw"
    with Path(path).open("rb") as file:
        head = file.read(32)
    if ending == "safetensors" and head[8:9] == b"{":
        return ending
    found = _by_content(path, head, ending)
    if found is None and ending == "raw":
        by_ending = _by_ending(path)
        if by_ending is not None and not (typed and by_ending.magics):
            anyway = "; if its bytes are the numbers all the same, give offset=0 and dtype"
            raise ValueError(f"its ending is that of {by_ending.what}: {by_ending.remedy}{anyway}")
    if isinstance(found, _Foreign):
        raise ValueError(f"it is {found.what}: {found.remedy}")
    return found or ending


def kind_on_volume(head: bytes, described: bool) -> str:
    """The same of a file on a volume, by its first bytes: "npy" or "raw"."""
    return "raw" if described or not head.startswith(_NUMPY) else "npy"


def _by_content(path: str, head: bytes, ending: str) -> str | _Foreign | None:
    for magic, kind in _MAGICS.items():
        if head.startswith(magic):
            return kind
    for foreign in _FOREIGN:
        if head.startswith(foreign.magics or (b"\0no bytes",)):
            return _archive(path) if foreign is _ZIP else foreign
    return "hdf5" if ending == "raw" and _has_user_block(path) else None


def _has_user_block(path: str) -> bool:
    """Whether it is HDF5 behind bytes of another program's: they are 512, or twice that, or twice that."""
    if Path(path).suffix.lower() not in (".mat", ".hdf", ".cxi", ".nxs"):
        return False
    with Path(path).open("rb") as file:
        at = 512
        while at <= _MAX_USER_BLOCK:
            file.seek(at)
            if file.read(len(_HDF5)) == _HDF5:
                return True
            at *= 2
    return False


def _archive(path: str) -> str | _Foreign:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception:  # damaged
        names = []
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    if any(name.endswith("/data.pkl") for name in names) or Path(path).suffix.lower() in _TORCH.endings:
        return _TORCH
    return "npz" if Path(path).suffix.lower() == ".npz" else _ZIP


def _by_ending(path: str) -> _Foreign | None:
    ending = Path(path).suffix.lower()
    return next((foreign for foreign in _FOREIGN if ending in foreign.endings), None)
