"""Model files of JSON and arrays, without code; tables of graphs, signals and inputs, with the place of every cell."""
