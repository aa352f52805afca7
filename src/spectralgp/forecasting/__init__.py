"""Forecasts: times of rows, what the calendar explains, models of the rest, and how they are weighed on the past."""
