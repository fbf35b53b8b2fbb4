"""User-defined functions and triggers, from modules that an administrator has installed.

interface     the contract for such modules; users import it as `saros.extensions`
installed     entry points of the process -> definitions
blocks        columns of the engine <-> arrays with validity; errors of user code
functions, aggregates     definitions as functions and aggregates of the engine
registered    CREATE, DROP, SHOW FUNCTION; calls of registered functions in a SELECT
triggers      CREATE, DROP, SHOW TRIGGER; the triggers to fire for a batch
trigger_dispatcher   the thread that AFTER triggers run on
"""
