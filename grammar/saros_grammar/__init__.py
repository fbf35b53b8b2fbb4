"""SQL text to statement trees: `parser.parse`, and `cache.StatementCache` for texts of known shapes."""
