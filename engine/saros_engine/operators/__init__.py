"""Operators execute a plan. Each kind of plan node has a class of operators, which are pulled block by block.

operator, base                the contract of operators; their base classes
scan/, join/                  operators that read series; operators that join their children
sorted_runs, block_buffer     buffers of rows that can be spilled to a file
the other modules             one operator each, named after its plan node
"""
