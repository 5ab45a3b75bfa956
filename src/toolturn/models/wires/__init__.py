"""The wires: how a turn's messages are spoken to a kind of server, and its replies read."""
