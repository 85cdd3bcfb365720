"""The user's own files: documents an application retrieves from, and lists of what to warm."""
