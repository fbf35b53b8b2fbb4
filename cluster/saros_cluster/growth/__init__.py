"""Growing and shrinking while serving: who is in the cluster, which slots move, and how far that is. Pure."""
