"""How the inputs of a model were made from files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Clock = Literal["numbers", "dates"]


@dataclass(frozen=True)
class InputRecipe:
    """How inputs were made: from time, from earlier signals, from a table, from several of these, or from nothing.

    A model file keeps it, so that later commands make inputs in the same way instead of guessing it from names.

    Parameters
    ----------
    time : {"numbers", "dates"}, optional
        A column "time" has the time of each signal: a number as it is written, or a date as days since 1970-01-01, UTC.
    lag : int, optional
        There is one column per node with the signal this many rows before.
    columns : tuple of str, default=()
        Columns that come from a table.

    Examples
    --------
    >>> from spectralgp.kernels import InputRecipe
    >>> print(InputRecipe("dates", 1, ("rain", "wind")))
    time (dates), lag:1 and a table with rain, wind
    >>> print(InputRecipe())
    no inputs
    """

    time: Clock | None = None
    lag: int | None = None
    columns: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The recipe in words."""
        parts = [] if self.time is None else [f"time ({self.time})"]
        parts += [] if self.lag is None else [f"lag:{self.lag}"]
        more = f", ... ({len(self.columns)} columns)" if len(self.columns) > 5 else ""
        parts += [f"a table with {', '.join(self.columns[:5])}{more}"] if self.columns else []
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts) or "no inputs"
