"""Command line: the only folder of the package that prints."""

from spectralgp.cli import commands
from spectralgp.cli.app import COMMANDS, app

__all__ = ["COMMANDS", "app"]
