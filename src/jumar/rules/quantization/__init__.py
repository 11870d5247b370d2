"""Topics of quantisation."""
