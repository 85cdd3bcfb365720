"""Who proposes what to warm: one module a source, each choosing by itself, and their union."""
