"""Foundations of all packages: arrays, checks of arguments, tables, files, progress."""
