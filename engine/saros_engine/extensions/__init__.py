"""User-defined functions and triggers. An administrator installs the modules of extensions.

interface     defines the contract for such modules; users import it as `saros.extensions`
installed     loads the definitions that entry points name
blocks        converts columns of the engine to and from arrays with validity masks; handles errors of user code
functions, aggregates     turn definitions into functions and aggregates of the engine
registered    executes CREATE, DROP, SHOW FUNCTION; finds the calls of registered functions in a SELECT
triggers      executes CREATE, DROP, SHOW TRIGGER; finds the triggers to fire for a batch
trigger_dispatcher   runs AFTER triggers on a separate thread
"""
