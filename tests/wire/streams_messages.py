"""What Apache's JSON says of the messages of streams groups, which no wheel of a client carries."""

from tests.wire.definitions import parse_definitions

DEFINITIONS_TEXT = """\
StreamsGroupHeartbeatRequest 88 0 0+
  GroupId string 0+
  MemberId string 0+
  MemberEpoch int32 0+
  EndpointInformationEpoch int32 0+
  InstanceId string 0+ nullableVersions=0+ default=null
  RackId string 0+ nullableVersions=0+ default=null
  RebalanceTimeoutMs int32 0+ default=-1
  Topology Topology 0+ nullableVersions=0+ default=null
    Epoch int32 0+
    Subtopologies []Subtopology 0+
      SubtopologyId string 0+
      SourceTopics []string 0+
      SourceTopicRegex []string 0+
      StateChangelogTopics []TopicInfo 0+
        Name string 0+
        Partitions int32 0+
        ReplicationFactor int16 0+
        TopicConfigs []KeyValue 0+
          Key string 0+
          Value string 0+
      RepartitionSinkTopics []string 0+
      RepartitionSourceTopics []TopicInfo 0+
        Name string 0+
        Partitions int32 0+
        ReplicationFactor int16 0+
        TopicConfigs []KeyValue 0+
          Key string 0+
          Value string 0+
      CopartitionGroups []CopartitionGroup 0+
        SourceTopics []int16 0+
        SourceTopicRegex []int16 0+
        RepartitionSourceTopics []int16 0+
  ActiveTasks []TaskIds 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partitions []int32 0+
  StandbyTasks []TaskIds 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partitions []int32 0+
  WarmupTasks []TaskIds 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partitions []int32 0+
  ProcessId string 0+ nullableVersions=0+ default=null
  UserEndpoint Endpoint 0+ nullableVersions=0+ default=null
    Host string 0+
    Port uint16 0+
  ClientTags []KeyValue 0+ nullableVersions=0+ default=null
    Key string 0+
    Value string 0+
  TaskOffsets []TaskOffset 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partition int32 0+
    Offset int64 0+
  TaskEndOffsets []TaskOffset 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partition int32 0+
    Offset int64 0+
  ShutdownApplication bool 0+ default=false
StreamsGroupHeartbeatResponse 88 0 0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullableVersions=0+ default=null
  MemberId string 0+
  MemberEpoch int32 0+
  HeartbeatIntervalMs int32 0+
  AcceptableRecoveryLag int32 0+
  TaskOffsetIntervalMs int32 0+
  Status []Status 0+ nullableVersions=0+
    StatusCode int8 0+
    StatusDetail string 0+
  ActiveTasks []TaskIds 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partitions []int32 0+
  StandbyTasks []TaskIds 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partitions []int32 0+
  WarmupTasks []TaskIds 0+ nullableVersions=0+ default=null
    SubtopologyId string 0+
    Partitions []int32 0+
  EndpointInformationEpoch int32 0+
  PartitionsByUserEndpoint []EndpointToPartitions 0+ nullableVersions=0+ default=null
    UserEndpoint Endpoint 0+
      Host string 0+
      Port uint16 0+
    ActivePartitions []TopicPartition 0+
      Topic string 0+
      Partitions []int32 0+
    StandbyPartitions []TopicPartition 0+
      Topic string 0+
      Partitions []int32 0+
StreamsGroupDescribeRequest 89 0 0+
  GroupIds []string 0+
  IncludeAuthorizedOperations bool 0+
StreamsGroupDescribeResponse 89 0 0+
  ThrottleTimeMs int32 0+
  Groups []DescribedGroup 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullableVersions=0+ default=null
    GroupId string 0+
    GroupState string 0+
    GroupEpoch int32 0+
    AssignmentEpoch int32 0+
    Topology Topology 0+ nullableVersions=0+ default=null
      Epoch int32 0+
      Subtopologies []Subtopology 0+ nullableVersions=0+ default=null
        SubtopologyId string 0+
        SourceTopics []string 0+
        RepartitionSinkTopics []string 0+
        StateChangelogTopics []TopicInfo 0+
          Name string 0+
          Partitions int32 0+
          ReplicationFactor int16 0+
          TopicConfigs []KeyValue 0+
            Key string 0+
            Value string 0+
        RepartitionSourceTopics []TopicInfo 0+
          Name string 0+
          Partitions int32 0+
          ReplicationFactor int16 0+
          TopicConfigs []KeyValue 0+
            Key string 0+
            Value string 0+
    Members []Member 0+
      MemberId string 0+
      MemberEpoch int32 0+
      InstanceId string 0+ nullableVersions=0+ default=null
      RackId string 0+ nullableVersions=0+ default=null
      ClientId string 0+
      ClientHost string 0+
      TopologyEpoch int32 0+
      ProcessId string 0+
      UserEndpoint Endpoint 0+ nullableVersions=0+ default=null
        Host string 0+
        Port uint16 0+
      ClientTags []KeyValue 0+
        Key string 0+
        Value string 0+
      TaskOffsets []TaskOffset 0+
        SubtopologyId string 0+
        Partition int32 0+
        Offset int64 0+
      TaskEndOffsets []TaskOffset 0+
        SubtopologyId string 0+
        Partition int32 0+
        Offset int64 0+
      Assignment Assignment 0+
        ActiveTasks []TaskIds 0+
          SubtopologyId string 0+
          Partitions []int32 0+
        StandbyTasks []TaskIds 0+
          SubtopologyId string 0+
          Partitions []int32 0+
        WarmupTasks []TaskIds 0+
          SubtopologyId string 0+
          Partitions []int32 0+
      TargetAssignment Assignment 0+
        ActiveTasks []TaskIds 0+
          SubtopologyId string 0+
          Partitions []int32 0+
        StandbyTasks []TaskIds 0+
          SubtopologyId string 0+
          Partitions []int32 0+
        WarmupTasks []TaskIds 0+
          SubtopologyId string 0+
          Partitions []int32 0+
      IsClassic bool 0+
    AuthorizedOperations int32 0+ default=-2147483648
"""


DEFINITIONS = parse_definitions(DEFINITIONS_TEXT)
