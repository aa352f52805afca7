"""The command line: the one room that prints."""

from spectralgp.cli import commands
from spectralgp.cli.app import COMMANDS, app, main

__all__ = ["COMMANDS", "app", "main"]
