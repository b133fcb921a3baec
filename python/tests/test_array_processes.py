"""Arrays in several processes: pickled, forked, and ended with their program."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from arrays_here import Here, host, on_the_cpu, opened, saved, table

pytestmark = pytest.mark.usefixtures("here")


def test_pickled_by_reference(tmp_path: Path, placement: str) -> None:
    content = table()
    with opened(saved(tmp_path, content), placement) as array:
        packed = pickle.dumps(array)
        assert len(packed) < 2000
        with pickle.loads(packed) as again:
            assert again.placement == placement
            np.testing.assert_array_equal(host(again[[7]]), content[[7]])
    with (
        penstock.from_tensor(content, device=Here.device) as array,
        pytest.raises(ValueError, match="pickled by reference"),
    ):
        pickle.dumps(array)


def _take(array: penstock.Array, rows: list[int], answers: Any) -> None:
    answers.put(host(array[rows]).copy())


@on_the_cpu
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_workers_read_too(tmp_path: Path, placement: str) -> None:
    content = table()
    context = multiprocessing.get_context("fork")
    with opened(saved(tmp_path, content), placement) as array:
        array[[0]]
        answers: Any = context.Queue()
        worker = context.Process(target=_take, args=(array, [5, 99, 5], answers))
        worker.start()
        np.testing.assert_array_equal(answers.get(timeout=60), content[[5, 99, 5]])
        worker.join(60)
        assert worker.exitcode == 0


def test_another_process_reads_a_pickled_array(tmp_path: Path, placement: str) -> None:
    content = table()
    with opened(saved(tmp_path, content), placement) as array:
        (tmp_path / "packed").write_bytes(pickle.dumps(array))
        program = (
            "import pickle, sys, numpy; taken = pickle.load(open(sys.argv[1], 'rb'))[[5, 99, 5]];"
            "taken = taken.cpu() if hasattr(taken, 'cpu') else taken;"
            "numpy.save(sys.argv[2], taken.numpy() if hasattr(taken, 'numpy') else taken)"
        )
        told = tmp_path / "told.npy"
        command = [sys.executable, "-c", program, str(tmp_path / "packed"), str(told)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(told), content[[5, 99, 5]])


@on_the_cpu
def test_what_a_program_stored_is_there_when_it_has_ended(tmp_path: Path) -> None:
    program = (
        "import numpy, penstock, sys\n"
        "array = penstock.empty(sys.argv[1], (100, 4), 'float32', device='cpu', cache='1MiB')\n"
        "array.scatter([3], numpy.full((1, 4), 7, 'float32'))\n"
        "kept = [array]\n"
        "kept.append(kept)\n"
    )
    path = tmp_path / "table.npy"
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    np.testing.assert_array_equal(np.load(path)[3], 7)


@on_the_cpu
def test_a_forked_process_ends_by_itself(tmp_path: Path) -> None:
    program = (
        "import os, penstock, sys\n"
        "arrays = [penstock.open(sys.argv[1], placement=p, device='cpu') for p in ('host', 'storage')]\n"
        "[array[[0]] for array in arrays]\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    arrays[0][[1]]\n"
        "    sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "[array[[2]] for array in arrays]\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(saved(tmp_path, table()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
