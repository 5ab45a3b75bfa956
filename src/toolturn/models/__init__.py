"""Models behind a wire: transports, what goes out, what comes in, and wrappers that are models themselves."""
