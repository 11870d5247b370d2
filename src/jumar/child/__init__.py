"""The child process in which native code meets strangers' models. Imports nothing of Jumar but its own two modules, so it starts fast."""
