"""What Apache's JSON says of the messages of consumer groups, which no wheel carries."""

from tests.wire.definitions import parse_definitions

DEFINITIONS_TEXT = """\
ConsumerGroupDescribeRequest 69 0-1 0+
  GroupIds []string 0+
  IncludeAuthorizedOperations bool 0+
ConsumerGroupDescribeResponse 69 0-1 0+
  ThrottleTimeMs int32 0+
  Groups []DescribedGroup 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullableVersions=0+ default=null
    GroupId string 0+
    GroupState string 0+
    GroupEpoch int32 0+
    AssignmentEpoch int32 0+
    AssignorName string 0+
    Members []Member 0+
      MemberId string 0+
      InstanceId string 0+ nullableVersions=0+ default=null
      RackId string 0+ nullableVersions=0+ default=null
      MemberEpoch int32 0+
      ClientId string 0+
      ClientHost string 0+
      SubscribedTopicNames []string 0+
      SubscribedTopicRegex string 0+ nullableVersions=0+ default=null
      Assignment Assignment 0+
        TopicPartitions []TopicPartitions 0+
          TopicId uuid 0+
          TopicName string 0+
          Partitions []int32 0+
      TargetAssignment Assignment 0+
        TopicPartitions []TopicPartitions 0+
          TopicId uuid 0+
          TopicName string 0+
          Partitions []int32 0+
      MemberType int8 1+ default=-1
    AuthorizedOperations int32 0+ default=-2147483648
ConsumerGroupHeartbeatRequest 68 0-1 0+
  GroupId string 0+
  MemberId string 0+
  MemberEpoch int32 0+
  InstanceId string 0+ nullableVersions=0+ default=null
  RackId string 0+ nullableVersions=0+ default=null
  RebalanceTimeoutMs int32 0+ default=-1
  SubscribedTopicNames []string 0+ nullableVersions=0+ default=null
  SubscribedTopicRegex string 1+ nullableVersions=1+ default=null
  ServerAssignor string 0+ nullableVersions=0+ default=null
  TopicPartitions []TopicPartitions 0+ nullableVersions=0+ default=null
    TopicId uuid 0+
    Partitions []int32 0+
ConsumerGroupHeartbeatResponse 68 0-1 0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullableVersions=0+ default=null
  MemberId string 0+ nullableVersions=0+ default=null
  MemberEpoch int32 0+
  HeartbeatIntervalMs int32 0+
  Assignment Assignment 0+ nullableVersions=0+ default=null
    TopicPartitions []TopicPartitions 0+
      TopicId uuid 0+
      Partitions []int32 0+
"""

DEFINITIONS = parse_definitions(DEFINITIONS_TEXT)
