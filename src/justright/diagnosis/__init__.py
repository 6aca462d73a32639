"""Which selection of labeled data would help most, tried out on labeled classes that are hidden for the test."""
