"""The key groupings, and what they share: hash choices, loads, the hash ring, key frequencies."""
