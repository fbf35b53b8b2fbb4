"""Which driver runs next: multilevel queue, deadlines, worker threads."""
