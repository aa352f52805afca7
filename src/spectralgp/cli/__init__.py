"""The command line: the one room that prints."""

from spectralgp.cli.app import COMMANDS, app, command_named, main

__all__ = ["COMMANDS", "app", "command_named", "main"]
