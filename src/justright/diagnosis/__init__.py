"""Which labeled data would help: rehearsed on classes whose labels are hidden."""
