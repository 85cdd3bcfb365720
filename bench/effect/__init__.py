"""Measures what warming is worth: one peak hour, replayed to a cold stack and to a warm one."""
