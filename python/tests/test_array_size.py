"""How many elements an array has, for NumPy and for users of PyTorch."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import penstock
import pytest


def test_numpy_counts_elements_and_torch_users_ask_for_sizes(tmp_path: Path) -> None:
    content = np.zeros((300, 4), np.float32)
    np.save(tmp_path / "a.npy", content)
    with penstock.open(tmp_path / "a.npy", device="cpu", placement="storage") as array:
        assert (np.size(array), np.shape(array), np.ndim(array)) == (1200, (300, 4), 2)
        assert (np.size(array, 0), np.size(array, 1), np.size(array, -1)) == (300, 4, 4)
        assert array.size == content.size
        assert array.size() == (300, 4)
        assert (array.size(0), array.size(dim=-1)) == (300, 4)
        assert pickle.loads(pickle.dumps(array.size)) == 1200
        with pytest.raises(IndexError):
            array.size(2)
