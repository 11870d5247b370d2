"""Rules about the graph as a whole."""
