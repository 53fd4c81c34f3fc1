"""What tests of an application are given: a bus in memory, a bus on embedded servers, fixtures.

Composition: may import everything. What users import stands in `ackbox.testing`.
"""
