"""Functions and triggers that users wrote, in modules that an administrator installed.

interface     what such a module defines; `saros.extensions` is its name for users
installed     entry points of the process -> definitions
blocks        columns of the engine <-> arrays with validity; what goes wrong in between
functions, aggregates     definitions as functions and aggregates of the engine
registered    CREATE, DROP, SHOW FUNCTION; calls of registered functions in a SELECT
triggers      CREATE, DROP, SHOW TRIGGER; what is fired for a batch
trigger_dispatcher   the thread that AFTER triggers run on
"""
