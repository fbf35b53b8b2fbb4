"""What commands print: tables of rows, of nodes and of TsFiles; progress lines; password prompts."""
