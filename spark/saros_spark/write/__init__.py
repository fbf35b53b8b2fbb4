"""Write a task's rows to the server, or into sealed TsFiles."""
