"""The colours of every picture."""

# Okabe and Ito's palette, distinct to colour-blind readers too, in an order that starts with the strongest contrasts;
# its yellow is left out as too faint for lines on white
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
