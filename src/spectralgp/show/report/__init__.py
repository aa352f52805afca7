"""Report of a fitted model in one HTML file: accuracy, cautions, and the learnt filters and models."""
