"""What commands show and ask: tables of rows, nodes and TsFiles; progress lines; password prompts; files of the user."""
