"""The chaos suite: scenarios, goldens, a fuzz and a headline workload on the shipped procedures.

Everything in here is drawn from labelled seeds, runs in a virtual world and counts effects at the
virtual tools. May import `sim` and what `sim` may import.
"""
