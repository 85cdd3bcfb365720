"""Embed: encoders, and the store in which every distinct text has one vector an encoder."""
