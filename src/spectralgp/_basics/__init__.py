"""What every room stands on: arrays, checks of arguments, tables, files, progress."""
