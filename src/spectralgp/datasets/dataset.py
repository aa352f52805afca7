"""Type of all data sets."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np

from spectralgp._basics.arrays import frozen
from spectralgp.graphs import Graph


class Dataset:
    """Graph with data on its nodes, as read-only attributes; the function that returns it lists them.

    Examples
    --------
    >>> from spectralgp.datasets import load_homicides
    >>> load_homicides()
    Dataset(graph=Graph(78 nodes, 199 edges), periods=3 values, counts=(3, 78) array, person_years=(3, 78) array)
    """

    graph: Graph

    def __init__(self, graph: Graph, **parts: Any) -> None:
        vars(self)["graph"] = graph
        for name, part in parts.items():
            vars(self)[name] = frozen(part) if isinstance(part, np.ndarray) else part

    def __getattr__(self, name: str) -> Any:
        """Refuse any other attribute, by the names of those that there are."""
        raise AttributeError(f"attribute must be one of {', '.join(vars(self))}; got {name!r}.")

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse changes."""
        raise FrozenInstanceError(f"cannot assign to {name!r}")

    def __repr__(self) -> str:
        """Attributes, with the shapes of arrays."""
        shown = {name: f"{part.shape} array" for name, part in vars(self).items() if isinstance(part, np.ndarray)}
        shown |= {name: f"{len(part)} values" for name, part in vars(self).items() if isinstance(part, tuple)}
        return f"Dataset({', '.join(f'{name}={shown.get(name, part)}' for name, part in vars(self).items())})"
