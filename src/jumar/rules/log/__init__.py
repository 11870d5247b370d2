"""What a log says that failed (found by reading it, not the model)."""
