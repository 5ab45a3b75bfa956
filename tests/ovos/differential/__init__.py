"""Random sessions that the reference engine and ours play in processes of their own, and what may differ."""
