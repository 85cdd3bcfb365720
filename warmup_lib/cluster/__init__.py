"""Cluster: a tenant's prompts in groups that people can read, each named."""
