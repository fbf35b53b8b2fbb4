"""Functions and aggregates: arguments, result type and implementation of each.

registry                                 all functions and aggregates by name; the one that a call names
function                                 what a function is; its signature and checks
scalar, series, regex                    tables of functions of rows and of series
aggregate, aggregates                    partial, merge and final step of each aggregate
moments, count_if, mode                  aggregates with a state of their own
"""
