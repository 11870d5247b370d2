"""Topics of the proof stage."""
