"""The batch script of a driver: a template and what is put into it. Pure text, no Slurm."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2

from campaign.jobconfig import JobConfig
from executors.batchtext import clock, sbatch_word, unexpanded

OUTPUT = "slurm.log"
"""The file in the run directory that every job of a run appends to."""
_TEMPLATE = "campaign.sbatch.j2"


class TemplateError(Exception):
    """A template that cannot be rendered: which, where and why."""


def script(job: JobConfig, name: str, run_dir: Path, folder: Path) -> str:
    """The batch script that goes on with the run in ``run_dir``, an absolute path.

    ``name`` is the job's; a template of the campaign's own is looked for in its ``folder``.
    Raises :class:`TemplateError`.
    """
    path = folder / job.template if job.template else _ours()
    if "\n" in str(run_dir):
        raise TemplateError(f"{str(run_dir)!r}: a path with a line break fits in no batch script")
    try:
        return _environment().from_string(_read(path)).render(
            job=job,
            name=name,
            time=clock(job.walltime),
            output=unexpanded(str(run_dir / OUTPUT)),
            lead=math.ceil(job.margin),
            run_dir=str(run_dir),
            bin=str(Path(sys.executable).parent),
            command=driver_command(run_dir),
        )  # fmt: skip
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{path}: line {error.lineno}: {error.message}") from error
    except (jinja2.TemplateError, TypeError, ValueError) as error:
        raise TemplateError(f"{path}: {error}") from error


def driver_command(run_dir: Path) -> list[str]:
    """Argv that goes on with a run, on the very interpreter this is.

    ``-P``: the job starts in the run directory, and nothing is to be imported from there.
    """
    return [sys.executable, "-P", "-m", "campaign", "resume", str(run_dir)]


def shell_words(words: str | Sequence[str]) -> str:
    """One word, or a list of them, for the shell."""
    return shlex.quote(words) if isinstance(words, str) else shlex.join(words)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {"sbatch": sbatch_word, "shell": shell_words}
    return environment


def _ours() -> Path:
    """Where our template lies: in the package, or beside the packages of a checkout."""
    packaged = Path(__file__).with_name(_TEMPLATE)
    return packaged if packaged.exists() else Path(__file__).parents[1] / "slurm" / _TEMPLATE


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(f"{path}: {error.strerror}; it lies in the campaign folder") from error
    except UnicodeDecodeError as error:
        raise TemplateError(f"{path}: not UTF-8 text; a template is text") from error
