"""Functions and aggregates: the arguments, the result type and the implementation of each function and aggregate.

registry                                 lists all functions and aggregates by name; finds the function of a call
function                                 defines the class of functions, with signature, checks and evaluators
scalar, series, regex                    define the functions of single rows, of series, and of texts
aggregate, aggregates                    define the base class of aggregates, and the aggregates with simple states
moments, count_if, mode, patterns        define the aggregates with special states
"""
