"""The surrogate computes with one BLAS thread, whatever the machine offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from campaign.space import FloatParameter
from campaign.surrogate import suggest
from campaign.trial import Goal, Trial

space = {f"x{i}": FloatParameter(type="float", min=0, max=1) for i in range(6)}
first = suggest(space, Goal("minimize"), [], count=150, seed=2)
trials = [Trial(p, sum((v - 0.1 * i) ** 2 for i, v in enumerate(p.values()))) for p in first]
print(suggest(space, Goal("minimize"), trials, count=8, seed=2))
"""


@pytest.mark.slow
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
