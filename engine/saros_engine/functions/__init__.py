"""Functions and aggregates: arguments, result type and implementation of each.

function, scalar, series, regex          functions of rows and of series
aggregate, aggregates                    partial, merge and final step of each aggregate
moments, count_if, mode                  aggregates with a state of their own
registered_call                          a call of a user-defined function
"""
