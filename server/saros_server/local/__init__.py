"""Clusters on this machine: their folders and processes, and the first administrator."""
