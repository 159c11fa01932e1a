"""Logins: passwords and single sign-on, sessions, and connections that end with them."""
