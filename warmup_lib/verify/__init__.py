"""Proof of what is warm, replay of later traffic, comparison and gates."""
