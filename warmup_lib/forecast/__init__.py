"""Forecast: how often each prompt and head will be asked for, from how often it was."""
