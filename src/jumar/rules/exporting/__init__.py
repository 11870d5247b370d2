"""Topics of the export stage."""
