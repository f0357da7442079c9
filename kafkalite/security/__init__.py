"""Security: certificates, logins, access control lists, quotas.

Imported by brokers that have such listeners or settings, and by no others.
"""
