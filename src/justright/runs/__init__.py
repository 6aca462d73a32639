"""One run: its problem, its settings, the stages that carry it out, and the folder it leaves."""
