"""Lines that other programs read: of logs and of CSV, which no text of a user can forge."""
