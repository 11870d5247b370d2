"""Topics of the lint of ATC commands (found while reading a command, not while reading a model)."""
