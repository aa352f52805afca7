"""Make the pictures and pages of the documentation again: python docs/make.py.

The page of reproduced results is made from the folder `reproduction`, where `spectralgp reproduce --all` leaves them.
"""

from __future__ import annotations

from pathlib import Path

from spectralgp.demo import save_filter_and_map
from spectralgp.paper import write_page

DOCS = Path(__file__).parent

if __name__ == "__main__":
    print(save_filter_and_map(DOCS / "images" / "demo-filter-map.png"))
    if Path("reproduction").is_dir():
        print(write_page("reproduction", DOCS))
