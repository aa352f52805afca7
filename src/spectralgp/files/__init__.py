"""Files: models as JSON and arrays that hold no code; graphs, signals and inputs, every cell with its place."""
