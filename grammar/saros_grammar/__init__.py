"""From SQL text to statements: `parser.parse`, and `cache.StatementCache` for texts of known shapes."""
