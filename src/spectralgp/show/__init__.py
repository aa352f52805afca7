"""What a fitted model looks like: figures on given axes, and reports as pages."""
