"""Models made of models: each wraps one and is one."""
