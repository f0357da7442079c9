"""Who may come in and what they may do: certificates, logins, access control lists, quotas.

Imported by brokers that have such listeners or settings, and by no others.
"""
