"""The linear term of an equation, and every function of it that an exponential method needs."""
