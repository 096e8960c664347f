"""A batch as columns: the numbers of one field of every record, as doubles.

A column is exact or silent: a value that a double does not hold exactly, or that is no number, is
marked as unusable and left to the walker, which judges that record by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from checks.values import MISSING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from checks.ruletype import Doubles, Flags

_EXACT = 2**53  # up to here every integer is a double
_PLAIN = frozenset({float})


class Columns:
    """The columns of ``records``, made when they are asked for."""

    def __init__(self, records: Sequence[Mapping[str, object]]) -> None:
        self.records = records
        self._raw: dict[str, list[object]] = {}
        self._numbers: dict[str, tuple[Doubles, Flags | None]] = {}

    def __len__(self) -> int:
        return len(self.records)

    def part(self, start: int, stop: int) -> Columns:
        """The columns of the records from ``start`` to before ``stop``."""
        return Columns(self.records[start:stop])

    def raw(self, name: str) -> list[object]:
        """The field's values, ``MISSING`` where a record does not have it."""
        found = self._raw.get(name)
        if found is None:
            try:
                found = [record[name] for record in self.records]
            except KeyError:
                found = [record.get(name, MISSING) for record in self.records]
            self._raw[name] = found
        return found

    def numbers(self, name: str) -> tuple[Doubles, Flags | None]:
        """The field's values as doubles, and which are usable; ``None``: all are."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = _doubles(self.raw(name))
        return found


class Given(Columns):
    """Columns that are columns already; the records are made when one is asked for."""

    def __init__(self, columns: Mapping[str, NDArray[np.generic] | Sequence[object]]) -> None:
        lengths = {len(values) for values in columns.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of {sorted(lengths)} values; they must be of one length")
        super().__init__(_Rows(columns, next(iter(lengths), 0)))
        self._columns = columns

    def part(self, start: int, stop: int) -> Columns:
        return Given({name: values[start:stop] for name, values in self._columns.items()})

    def raw(self, name: str) -> list[object]:
        values = self._columns.get(name)
        if values is None:
            return [MISSING] * len(self)
        return values.tolist() if isinstance(values, np.ndarray) else list(values)

    def numbers(self, name: str) -> tuple[Doubles, Flags | None]:
        values = self._columns.get(name)
        if isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 1:
            return values.astype(np.float64, copy=False), None
        return super().numbers(name)


class _Rows(Sequence[Mapping[str, object]]):
    """Columns seen as records."""

    def __init__(
        self, columns: Mapping[str, NDArray[np.generic] | Sequence[object]], count: int
    ) -> None:
        self._columns = columns
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Mapping[str, object]:  # type: ignore[override]
        return {
            name: values[index].item() if isinstance(values, np.ndarray) else values[index]
            for name, values in self._columns.items()
        }


def _doubles(raw: list[object]) -> tuple[Doubles, Flags | None]:
    kinds = frozenset(map(type, raw))
    if kinds <= _PLAIN:
        return np.array(raw, dtype=np.float64), None
    if kinds <= {float, int}:
        whole = [value for value in raw if type(value) is int]
        if min(whole) >= -_EXACT and max(whole) <= _EXACT:
            return np.array(raw, dtype=np.float64), None
    usable = [type(v) is float or (type(v) is int and -_EXACT <= v <= _EXACT) for v in raw]
    values = np.array(
        [v if fine else 0.0 for v, fine in zip(raw, usable, strict=True)], dtype=np.float64
    )
    return values, np.array(usable, dtype=np.bool_)


def usable(columns: Columns, names: Sequence[str]) -> Flags | None:
    """The records of which all of these fields are usable as doubles; ``None``: every one."""
    marks = [mark for name in names if (mark := columns.numbers(name)[1]) is not None]
    return None if not marks else np.logical_and.reduce(marks)
