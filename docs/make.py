"""Make the pictures of the documentation again: python docs/make.py."""

from __future__ import annotations

from pathlib import Path

from spectralgp.demo import save_filter_and_map

DOCS = Path(__file__).parent

if __name__ == "__main__":
    print(save_filter_and_map(DOCS / "images" / "demo-filter-map.png"))
