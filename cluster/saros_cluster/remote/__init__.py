"""Reading series that lie on other nodes, behind the same interface as local ones."""
