"""Certificates: files and their validity, creation for a cluster, and the names that nodes must have.

certificate_files     files that are read again when they change
certificate_making    `saros cluster certificates`
peer_certificates     certificates between nodes
"""
