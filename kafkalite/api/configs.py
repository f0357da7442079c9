"""What describes and changes settings: one module for each API or pair, and here their list."""

from kafkalite.api import alter_configs, describe_configs, list_config_resources

HANDLERS = (
    *describe_configs.HANDLERS,
    *alter_configs.HANDLERS,
    *list_config_resources.HANDLERS,
)
