"""From SQL text to statements."""
