"""Tables into files, whole or not at all."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from spectralgp._basics.extras import require
from spectralgp._basics.files import atomic_write
from spectralgp.files.tables import PARQUET

if TYPE_CHECKING:
    import pandas as pd


def write_tables(frames: dict[Path, pd.DataFrame], *, index: bool = True) -> None:
    """Write tables as CSV or, by their suffix, Parquet. No file is replaced before all of them are written.

    Parameters
    ----------
    frames : dict of path to DataFrame
        What to write where.
    index : bool, default=True
        Write the index too, as the first column.
    """
    with ExitStack() as stack:
        for path, frame in frames.items():
            beside = stack.enter_context(atomic_write(path))
            if path.suffix.lower() in PARQUET:
                require("pyarrow", "parquet", "to write Parquet files")
                frame.to_parquet(beside, index=index)
            else:
                frame.to_csv(beside, index=index)
