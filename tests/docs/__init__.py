"""A package, because other test folders have a ``test_examples.py`` too."""
