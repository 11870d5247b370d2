"""Topics of `jumar doctor`: what of a machine stands in the way, found without a model."""
