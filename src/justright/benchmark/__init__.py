"""The stages put together: features of several stores to weights, weights to runs, and which selector to trust."""
