"""Certificates: files, their validity, creation for a cluster, and the names that nodes must have."""
