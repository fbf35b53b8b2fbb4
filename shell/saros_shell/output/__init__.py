"""Output and questions of commands: tables of rows, nodes and TsFiles; progress lines; passwords; files of the user."""
