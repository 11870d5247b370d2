"""Rules about data types."""
