"""Rules about single operators."""
