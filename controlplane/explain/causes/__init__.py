"""Causes of exceeded limits: the likely one, and the changes before it by their shares."""
