"""Tables → text, JSON, CSV, Markdown, SQLite."""
