"""One module a layer: what it could warm, how it warms an item, proves it and finds it again."""
