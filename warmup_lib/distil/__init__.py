"""Distil: the requests of a day as distinct prompts and heads, with near duplicates found."""
