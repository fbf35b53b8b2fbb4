"""Functions and aggregates: arguments, result type and implementation of each.

registry                                 all functions and aggregates by name; lookup for a call
function                                 the definition of a function: its signature and checks
scalar, series, regex                    tables of functions of rows and of series
aggregate, aggregates                    partial, merge and final step of each aggregate
moments, count_if, mode                  aggregates with a state of their own
"""
