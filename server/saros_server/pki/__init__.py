"""Certificates: files and their validity, creation for a cluster, and the names that nodes must have.

certificate_files     files that are reloaded when they change
certificate_making    `saros cluster certificates`, and self-signed servers
peer_certificates     certificates between nodes
"""
