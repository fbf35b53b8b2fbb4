"""Functions and aggregates: the arguments, the result type and the implementation of each one.

registry                                 all functions and aggregates by name; lookup for a call
function                                 the definition of a function: its signature and checks
scalar, series, regex                    tables of functions of rows and of series
aggregate, aggregates                    partial, merge and final step of each aggregate
moments, count_if, mode, patterns        aggregates with a state of their own
"""
