"""What Apache's JSON says of the messages about delegation tokens, which the wheel lacks."""

from tests.wire.between_brokers import _field as field
from tests.wire.between_brokers import _message as message

PRINCIPAL = (field("PrincipalType", "string", "0+"), field("PrincipalName", "string", "0+"))
REQUESTER = (
    field("TokenRequesterPrincipalType", "string", "3+"),
    field("TokenRequesterPrincipalName", "string", "3+"),
)
ERROR = field("ErrorCode", "int16", "0+")
THROTTLE = field("ThrottleTimeMs", "int32", "0+")
HMAC = field("Hmac", "bytes", "0+")
EXPIRY = field("ExpiryTimestampMs", "int64", "0+")

DEFINITIONS = {
    "CreateDelegationTokenRequest": message(
        38,
        "1-3",
        "2+",
        field("OwnerPrincipalType", "string", "3+", nullableVersions="3+"),
        field("OwnerPrincipalName", "string", "3+", nullableVersions="3+"),
        field("Renewers", "[]CreatableRenewers", "0+", fields=PRINCIPAL),
        field("MaxLifetimeMs", "int64", "0+"),
    ),
    "CreateDelegationTokenResponse": message(
        38,
        "1-3",
        "2+",
        ERROR,
        *PRINCIPAL,
        *REQUESTER,
        field("IssueTimestampMs", "int64", "0+"),
        EXPIRY,
        field("MaxTimestampMs", "int64", "0+"),
        field("TokenId", "string", "0+"),
        HMAC,
        THROTTLE,
    ),
    "RenewDelegationTokenRequest": message(
        39, "1-2", "2+", HMAC, field("RenewPeriodMs", "int64", "0+")
    ),
    "RenewDelegationTokenResponse": message(39, "1-2", "2+", ERROR, EXPIRY, THROTTLE),
    "ExpireDelegationTokenRequest": message(
        40, "1-2", "2+", HMAC, field("ExpiryTimePeriodMs", "int64", "0+")
    ),
    "ExpireDelegationTokenResponse": message(40, "1-2", "2+", ERROR, EXPIRY, THROTTLE),
    "DescribeDelegationTokenRequest": message(
        41,
        "1-3",
        "2+",
        field(
            "Owners",
            "[]DescribeDelegationTokenOwner",
            "0+",
            nullableVersions="0+",
            fields=PRINCIPAL,
        ),
    ),
    "DescribeDelegationTokenResponse": message(
        41,
        "1-3",
        "2+",
        ERROR,
        field(
            "Tokens",
            "[]DescribedDelegationToken",
            "0+",
            fields=(
                *PRINCIPAL,
                *REQUESTER,
                field("IssueTimestamp", "int64", "0+"),
                field("ExpiryTimestamp", "int64", "0+"),
                field("MaxTimestamp", "int64", "0+"),
                field("TokenId", "string", "0+"),
                HMAC,
                field("Renewers", "[]DescribedDelegationTokenRenewer", "0+", fields=PRINCIPAL),
            ),
        ),
        THROTTLE,
    ),
}
