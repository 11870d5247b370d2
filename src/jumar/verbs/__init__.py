"""The verbs: one function per command, each taking a model or a case and returning a case (or a bare record)."""
