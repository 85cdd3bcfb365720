"""Reading request logs: one module a dialect, redaction before anything is stored, quarantine."""
