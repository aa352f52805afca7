"""What the rest of the package needs of a graph, wherever its weights are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Self

from spectralgp.graphs.laplacians import LaplacianKind
from spectralgp.operators import Operator


class GraphBase(ABC):
    """An undirected weighted graph that never changes: in memory, or as a folder of partitions.

    Copying returns the graph itself. Expensive results are remembered in `_cache`, which pickles leave out.
    """

    _cache: dict[Hashable, Any]

    @property
    @abstractmethod
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    @abstractmethod
    def n_edges(self) -> int:
        """Number of edges, each counted once."""

    @property
    @abstractmethod
    def names(self) -> Sequence[Hashable] | None:
        """Names of the nodes, if they have any."""

    @property
    @abstractmethod
    def coordinates(self) -> Any:
        """Where the nodes are, shape (n_nodes, n_dimensions), if that is known."""

    @property
    def is_whole(self) -> bool:
        """Whether all of it is in memory, so that it can be decomposed."""
        return True

    def require_whole(self, purpose: str) -> None:
        """Refuse a graph of which not all is in memory for a purpose, which the message states.

        Raises
        ------
        TypeError
            If it is in partitions.
        """
        if not self.is_whole:
            raise TypeError(
                f"graph must be in memory {purpose}; got {type(self).__name__}. Use a Graph, where it fits into memory."
            )

    def adopted(self, signals: Any) -> Any:
        """Signals on this graph as its operators take them; an error if they have holes and it cannot fill them in."""
        return signals

    @abstractmethod
    def operator(
        self, kind: LaplacianKind = "combinatorial", prototype: Any = None, device: str | None = None
    ) -> Operator:
        """Laplacian as an operator on blocks of signals such as `prototype`."""

    def __copy__(self) -> Self:
        """Return the graph itself: it cannot change."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the graph itself, so that what was computed on it is kept."""
        return self

    def __sklearn_clone__(self) -> Self:
        """Return the graph itself, so that cross-validation computes its spectrum once."""
        return self
