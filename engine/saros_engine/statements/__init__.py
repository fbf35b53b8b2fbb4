"""Statements other than SELECT and SHOW: a module for each kind."""
