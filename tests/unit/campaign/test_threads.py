"""One BLAS thread while inside, and what was before afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np  # loads a BLAS
import pytest

from campaign.threads import _switches, one_thread


def test_the_threads_of_blas_are_one_inside_and_restored_by_the_last_to_leave() -> None:
    assert np.ones(2) @ np.ones(2) == 2.0
    if not _switches():
        pytest.skip("NumPy does not use an OpenBLAS here")
    before = [get() for get, _ in _switches()]
    with one_thread():
        with one_thread():
            assert {get() for get, _ in _switches()} == {1}
        assert {get() for get, _ in _switches()} == {1}
    assert [get() for get, _ in _switches()] == before


PROGRAM = """
from campaign.space import FloatParameter
from campaign.surrogate import Goal, Trial, suggest

space = {f"x{i}": FloatParameter(type="float", min=0, max=1) for i in range(6)}
first = suggest(space, Goal("minimize"), [], count=150, seed=2)
trials = [Trial(p, sum((v - 0.1 * i) ** 2 for i, v in enumerate(p.values()))) for p in first]
print(suggest(space, Goal("minimize"), trials, count=8, seed=2))
"""


def test_proposals_do_not_depend_on_the_number_of_blas_threads() -> None:
    answers = set()
    for threads in ("1", "2"):
        answers.add(
            subprocess.run(
                [sys.executable, "-c", PROGRAM],
                env=os.environ | {"OPENBLAS_NUM_THREADS": threads},
                cwd=Path(__file__).parents[3],
                capture_output=True,
                text=True,
                check=True,
                timeout=300,
            ).stdout
        )
    assert len(answers) == 1
