"""Output of commands: tables of rows, nodes and TsFiles; progress lines; password prompts."""
