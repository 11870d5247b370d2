"""Topics of the compile stage (found while running ATC, not while reading the model)."""
