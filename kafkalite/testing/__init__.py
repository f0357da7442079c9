"""What tests of other projects import: brokers, fixtures, a history checker."""
