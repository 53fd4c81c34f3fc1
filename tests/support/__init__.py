"""What tests share: real services, databases of their own, waiting on conditions.

Test modules import it relatively (`from ..support.waiting import wait_until`).
"""
