"""What is wrong with a set of images: unreadable files, copies, labels that contradict each other."""
