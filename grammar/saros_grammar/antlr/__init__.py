"""What surrounds the generated parser: lexer, error messages, redaction, unsupported statements."""
