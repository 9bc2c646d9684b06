"""One package per composite resource kind; none of them imports another."""
