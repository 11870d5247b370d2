"""The command line: parses and prints, decides nothing. Imports neither numpy nor onnx."""
