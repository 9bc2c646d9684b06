"""Dynamic Resource Allocation: devices and the selectors that choose them."""
