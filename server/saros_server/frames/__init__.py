"""The native protocol: an adapter between its frames (`saros_wire.frames`) and the client API.

frame_protocol   the protocol on the port
frame_handler    the frames of one connection: requests, and what comes while one runs
calls            each call: its message to an operation's request, and the answer back
credit_window    how much of a stream may be sent
"""
