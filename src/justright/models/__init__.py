"""What is trained on top of a backbone, its moving average, and how rates and temperatures move."""
