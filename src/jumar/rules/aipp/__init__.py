"""Topics of AIPP files: their form, the chip, the model, and the transform that they stand for."""
