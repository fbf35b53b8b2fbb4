"""The native protocol: an adapter between its frames (`saros_wire.frames`) and the client API.

frame_protocol   the protocol on the port
frame_handler    the frames of one connection: requests, and frames that arrive while one runs
calls            each call: from its message to an operation's request, and from the answer to a message
credit_window    the bytes of a stream that may be sent
"""
