"""From statements to blocks: analysis, plans, fragments, operators."""
