"""Retrieval documents -> chunks: what a tenant's application retrieves from, cut as it cuts it."""
