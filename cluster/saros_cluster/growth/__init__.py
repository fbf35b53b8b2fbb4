"""Growing and shrinking while serving: the cluster's nodes, the slots that move, and the progress made. Pure."""
