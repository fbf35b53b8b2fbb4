"""Reading series that lie on other nodes (R-2.7), behind the same interface as local ones."""
