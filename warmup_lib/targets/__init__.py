"""One module a kind of target: how to talk to a place that gets warm, and what it can do."""
