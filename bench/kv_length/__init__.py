"""Measures what it is worth to charge a head its real length: a static 2,048 tokens, or blocks."""
