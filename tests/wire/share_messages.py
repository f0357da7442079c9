"""What Apache's JSON says of the messages of share groups, which no wheel of a client carries."""

from tests.wire.definitions import parse_definitions

DEFINITIONS_TEXT = """\
ShareGroupHeartbeatRequest 76 1 0+
  GroupId string 0+
  MemberId string 0+
  MemberEpoch int32 0+
  RackId string 0+ nullableVersions=0+ default=null
  SubscribedTopicNames []string 0+ nullableVersions=0+ default=null
ShareGroupHeartbeatResponse 76 1 0+
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
ShareGroupDescribeRequest 77 1 0+
  GroupIds []string 0+
  IncludeAuthorizedOperations bool 0+
ShareGroupDescribeResponse 77 1 0+
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
      RackId string 0+ nullableVersions=0+ default=null
      MemberEpoch int32 0+
      ClientId string 0+
      ClientHost string 0+
      SubscribedTopicNames []string 0+
      Assignment Assignment 0+
        TopicPartitions []TopicPartitions 0+
          TopicId uuid 0+
          TopicName string 0+
          Partitions []int32 0+
    AuthorizedOperations int32 0+ default=-2147483648
ShareFetchRequest 78 1-2 0+
  GroupId string 0+ nullableVersions=0+ default=null
  MemberId string 0+ nullableVersions=0+
  ShareSessionEpoch int32 0+
  MaxWaitMs int32 0+
  MinBytes int32 0+
  MaxBytes int32 0+ default=0x7fffffff
  MaxRecords int32 1+
  BatchSize int32 1+
  ShareAcquireMode int8 2+ default=0
  IsRenewAck bool 2+ default=false
  Topics []FetchTopic 0+
    TopicId uuid 0+
    Partitions []FetchPartition 0+
      PartitionIndex int32 0+
      PartitionMaxBytes int32 0
      AcknowledgementBatches []AcknowledgementBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        AcknowledgeTypes []int8 0+
  ForgottenTopicsData []ForgottenTopic 0+
    TopicId uuid 0+
    Partitions []int32 0+
ShareFetchResponse 78 1-2 0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullableVersions=0+ default=null
  AcquisitionLockTimeoutMs int32 1+
  Responses []ShareFetchableTopicResponse 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
      AcknowledgeErrorCode int16 0+
      AcknowledgeErrorMessage string 0+ nullableVersions=0+ default=null
      CurrentLeader LeaderIdAndEpoch 0+
        LeaderId int32 0+
        LeaderEpoch int32 0+
      Records records 0+ nullableVersions=0
      AcquiredRecords []AcquiredRecords 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        DeliveryCount int16 0+
  NodeEndpoints []NodeEndpoint 0+
    NodeId int32 0+
    Host string 0+
    Port int32 0+
    Rack string 0+ nullableVersions=0+ default=null
ShareAcknowledgeRequest 79 1-2 0+
  GroupId string 0+ nullableVersions=0+ default=null
  MemberId string 0+ nullableVersions=0+
  ShareSessionEpoch int32 0+
  IsRenewAck bool 2+ default=false
  Topics []AcknowledgeTopic 0+
    TopicId uuid 0+
    Partitions []AcknowledgePartition 0+
      PartitionIndex int32 0+
      AcknowledgementBatches []AcknowledgementBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        AcknowledgeTypes []int8 0+
ShareAcknowledgeResponse 79 1-2 0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullableVersions=0+ default=null
  AcquisitionLockTimeoutMs int32 2+
  Responses []ShareAcknowledgeTopicResponse 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
      CurrentLeader LeaderIdAndEpoch 0+
        LeaderId int32 0+
        LeaderEpoch int32 0+
  NodeEndpoints []NodeEndpoint 0+
    NodeId int32 0+
    Host string 0+
    Port int32 0+
    Rack string 0+ nullableVersions=0+ default=null
InitializeShareGroupStateRequest 83 0 0+
  GroupId string 0+
  Topics []InitializeStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      StateEpoch int32 0+
      StartOffset int64 0+
InitializeShareGroupStateResponse 83 0 0+
  Results []InitializeStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
ReadShareGroupStateRequest 84 0 0+
  GroupId string 0+
  Topics []ReadStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      LeaderEpoch int32 0+
ReadShareGroupStateResponse 84 0 0+
  Results []ReadStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
      StateEpoch int32 0+
      StartOffset int64 0+
      StateBatches []StateBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        DeliveryState int8 0+
        DeliveryCount int16 0+
WriteShareGroupStateRequest 85 0-1 0+
  GroupId string 0+
  Topics []WriteStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      StateEpoch int32 0+
      LeaderEpoch int32 0+
      StartOffset int64 0+
      DeliveryCompleteCount int32 1+ default=-1
      StateBatches []StateBatch 0+
        FirstOffset int64 0+
        LastOffset int64 0+
        DeliveryState int8 0+
        DeliveryCount int16 0+
WriteShareGroupStateResponse 85 0-1 0+
  Results []WriteStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
DeleteShareGroupStateRequest 86 0 0+
  GroupId string 0+
  Topics []DeleteStateData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
DeleteShareGroupStateResponse 86 0 0+
  Results []DeleteStateResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
ReadShareGroupStateSummaryRequest 87 0-1 0+
  GroupId string 0+
  Topics []ReadStateSummaryData 0+
    TopicId uuid 0+
    Partitions []PartitionData 0+
      Partition int32 0+
      LeaderEpoch int32 0+
ReadShareGroupStateSummaryResponse 87 0-1 0+
  Results []ReadStateSummaryResult 0+
    TopicId uuid 0+
    Partitions []PartitionResult 0+
      Partition int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
      StateEpoch int32 0+
      LeaderEpoch int32 0+
      StartOffset int64 0+
      DeliveryCompleteCount int32 1+ default=-1
DescribeShareGroupOffsetsRequest 90 0-1 0+
  Groups []DescribeShareGroupOffsetsRequestGroup 0+
    GroupId string 0+
    Topics []DescribeShareGroupOffsetsRequestTopic 0+ nullableVersions=0+
      TopicName string 0+
      Partitions []int32 0+
DescribeShareGroupOffsetsResponse 90 0-1 0+
  ThrottleTimeMs int32 0+
  Groups []DescribeShareGroupOffsetsResponseGroup 0+
    GroupId string 0+
    Topics []DescribeShareGroupOffsetsResponseTopic 0+
      TopicName string 0+
      TopicId uuid 0+
      Partitions []DescribeShareGroupOffsetsResponsePartition 0+
        PartitionIndex int32 0+
        StartOffset int64 0+
        LeaderEpoch int32 0+
        Lag int64 1+ default=-1
        ErrorCode int16 0+
        ErrorMessage string 0+ nullableVersions=0+ default=null
    ErrorCode int16 0+
    ErrorMessage string 0+ nullableVersions=0+ default=null
AlterShareGroupOffsetsRequest 91 0 0+
  GroupId string 0+
  Topics []AlterShareGroupOffsetsRequestTopic 0+
    TopicName string 0+
    Partitions []AlterShareGroupOffsetsRequestPartition 0+
      PartitionIndex int32 0+
      StartOffset int64 0+
AlterShareGroupOffsetsResponse 91 0 0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullableVersions=0+ default=null
  Responses []AlterShareGroupOffsetsResponseTopic 0+
    TopicName string 0+
    TopicId uuid 0+
    Partitions []AlterShareGroupOffsetsResponsePartition 0+
      PartitionIndex int32 0+
      ErrorCode int16 0+
      ErrorMessage string 0+ nullableVersions=0+ default=null
DeleteShareGroupOffsetsRequest 92 0 0+
  GroupId string 0+
  Topics []DeleteShareGroupOffsetsRequestTopic 0+
    TopicName string 0+
DeleteShareGroupOffsetsResponse 92 0 0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullableVersions=0+ default=null
  Responses []DeleteShareGroupOffsetsResponseTopic 0+
    TopicName string 0+
    TopicId uuid 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullableVersions=0+ default=null
"""

DEFINITIONS = parse_definitions(DEFINITIONS_TEXT)
