from pathlib import Path

import pytest

from reproduction import reproduce


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory, data_folder) -> tuple[Path, list]:
    """Folder and outcomes of the cut that `make reproduce-quick` runs."""
    folder = tmp_path_factory.mktemp("quick")
    return folder, reproduce(quick=True, out=folder, folder=data_folder, n_processes=1)
