"""The results of SHOW and COUNT."""
