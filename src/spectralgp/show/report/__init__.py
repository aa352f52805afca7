"""The report: one HTML file with what is predicted and how well, what was learnt, and what to watch out for."""
