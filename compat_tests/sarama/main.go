// Driver of sarama: one function an operation of DRIVERS.md. SARAMA_VERSION sets Config.Version.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var (
	bootstrap []string
	members   = map[string]*member{}
	adminOnce sync.Once
	adminOf   sarama.ClusterAdmin
	clientOf  sarama.Client
)

func main() {
	bootstrap = strings.Split(os.Args[1], ",")
	sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	serve(map[string]Operation{
		"info": info, "produce": produce, "consume": consume,
		"member_open": memberOpen, "member_commit": memberCommit, "member_close": memberClose,
		"create_topic": createTopic, "delete_topic": deleteTopic, "list_topics": listTopics,
		"describe_topic": describeTopic, "create_partitions": createPartitions,
		"describe_configs": describeConfigs, "alter_configs": alterConfigs,
		"list_groups": listGroups, "describe_group": describeGroup, "delete_group": deleteGroup,
		"group_offsets": groupOffsets, "alter_group_offsets": alterGroupOffsets,
		"delete_group_offsets": deleteGroupOffsets, "delete_records": deleteRecords,
		"list_offsets": listOffsets, "describe_cluster": describeCluster,
	}, errorOf)
	for _, one := range members {
		one.close()
	}
}

func errorOf(err error) *ErrorReply {
	var code sarama.KError
	if errors.As(err, &code) {
		return &ErrorReply{Code: int16(code), Message: err.Error()}
	}
	var topic *sarama.TopicError
	if errors.As(err, &topic) {
		return &ErrorReply{Code: int16(topic.Err), Message: err.Error()}
	}
	var partition *sarama.TopicPartitionError
	if errors.As(err, &partition) {
		return &ErrorReply{Code: int16(partition.Err), Message: err.Error()}
	}
	var described *sarama.DescribeConfigError
	if errors.As(err, &described) {
		return &ErrorReply{Code: int16(described.Err), Message: err.Error()}
	}
	return &ErrorReply{Code: fmt.Sprintf("%T", err), Message: err.Error()}
}

func baseConfig() *sarama.Config {
	config := sarama.NewConfig()
	if text := os.Getenv("SARAMA_VERSION"); text != "" {
		version, err := sarama.ParseKafkaVersion(text)
		if err != nil {
			panic(err)
		}
		config.Version = version
	}
	config.Metadata.Retry.Backoff = 50 * time.Millisecond
	comeIn(config)
	return config
}

func admin() sarama.ClusterAdmin {
	adminOnce.Do(func() {
		var err error
		clientOf, err = sarama.NewClient(bootstrap, baseConfig())
		if err != nil {
			panic(err)
		}
		adminOf, err = sarama.NewClusterAdminFromClient(clientOf)
		if err != nil {
			panic(err)
		}
	})
	return adminOf
}

func info(*Request) (any, error) {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/IBM/sarama" {
			return object{"version": module.Version}, nil
		}
	}
	return object{"version": "unknown"}, nil
}

func produce(request *Request) (any, error) {
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	acks := map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll, "": sarama.WaitForAll}
	config := baseConfig()
	config.Producer.RequiredAcks = acks[request.Acks]
	config.Producer.Compression = codecs[codecOr(request)]
	config.Producer.Return.Successes, config.Producer.Return.Errors = true, true
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	config.Producer.Retry.Backoff = 50 * time.Millisecond
	config.Producer.Partitioner = sarama.NewMurmur2Partitioner
	if len(request.Records) > 0 && request.Records[0].Partition != nil {
		config.Producer.Partitioner = sarama.NewManualPartitioner
	}
	if request.MaxRequestBytes != 0 {
		config.Producer.MaxMessageBytes = request.MaxRequestBytes
	}
	if request.Idempotence {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
		// Its default of three gives up within a fifth of a second, before a leader is elected.
		config.Producer.Retry.Max = 400
	}
	producer, err := sarama.NewAsyncProducer(bootstrap, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	go func() {
		for position, record := range request.Records {
			sent := &sarama.ProducerMessage{Topic: request.Topic, Metadata: position}
			if record.Key != nil {
				sent.Key = sarama.ByteEncoder(record.Key)
			}
			if record.Value != nil {
				sent.Value = sarama.ByteEncoder(record.Value)
			}
			if record.Partition != nil {
				sent.Partition = *record.Partition
			}
			if record.Timestamp != nil {
				sent.Timestamp = time.UnixMilli(*record.Timestamp)
			}
			for _, header := range record.Headers {
				sent.Headers = append(sent.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
			}
			producer.Input() <- sent
		}
	}()
	results := make([]Result, len(request.Records))
	deadline := time.After(40 * time.Second)
	for range request.Records {
		select {
		case done := <-producer.Successes():
			results[done.Metadata.(int)] = Result{Partition: done.Partition, Offset: done.Offset}
		case failed := <-producer.Errors():
			results[failed.Msg.Metadata.(int)].Error = errorOf(failed.Err)
		case <-deadline:
			return nil, timeoutError(0, len(request.Records))
		}
	}
	return object{"results": results}, nil
}

func recordOf(message *sarama.ConsumerMessage) Record {
	headers := []Header{}
	for _, header := range message.Headers {
		headers = append(headers, Header{string(header.Key), header.Value})
	}
	timestamp := message.Timestamp.UnixMilli()
	return Record{
		Topic: message.Topic, Partition: &message.Partition, Offset: message.Offset, Timestamp: &timestamp,
		Key: message.Key, Value: message.Value, Headers: headers,
	}
}

func consume(request *Request) (any, error) {
	config := baseConfig()
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	if request.MaxPartitionBytes != 0 {
		config.Consumer.Fetch.Default = int32(request.MaxPartitionBytes)
	}
	client, err := sarama.NewClient(bootstrap, config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	messages := make(chan *sarama.ConsumerMessage)
	failures := make(chan error)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for text, raw := range request.Starts {
		start := startOf(raw)
		offset := start.Offset
		if start.Earliest {
			offset = sarama.OffsetOldest
		} else if start.Timestamp != nil {
			if offset, err = client.GetOffset(request.Topic, partitionOf(text), *start.Timestamp); err != nil {
				return nil, err
			}
		}
		partition, err := consumer.ConsumePartition(request.Topic, partitionOf(text), offset)
		if err != nil {
			return nil, err
		}
		running.Add(1)
		go func() {
			defer running.Done()
			defer partition.Close()
			for {
				select {
				case message := <-partition.Messages():
					select {
					case messages <- message:
					case <-stop:
						return
					}
				case failure := <-partition.Errors():
					select {
					case failures <- failure.Err:
					case <-stop:
						return
					}
				case <-stop:
					return
				}
			}
		}()
	}
	defer running.Wait()
	defer close(stop)
	deadline := time.After(time.Duration(numberOr(request.TimeoutMs, 20000)) * time.Millisecond)
	records := []Record{}
	for len(records) < request.Count {
		select {
		case message := <-messages:
			records = append(records, recordOf(message))
		case failure := <-failures:
			return nil, failure
		case <-deadline:
			return nil, timeoutError(len(records), request.Count)
		}
	}
	return object{"records": records}, nil
}

type member struct {
	events  *MemberEvents
	group   sarama.ConsumerGroup
	stop    context.CancelFunc
	done    chan struct{}
	marking bool
	lock    sync.Mutex
	session sarama.ConsumerGroupSession
}

func memberOpen(request *Request) (any, error) {
	config := baseConfig()
	config.ClientID = request.Member
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Offsets.AutoCommit.Enable = request.AutoCommit
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	if request.Reset == "latest" {
		config.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	config.Consumer.Group.Session.Timeout = time.Duration(numberOr(request.SessionTimeoutMs, 10000)) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	config.Consumer.Group.Rebalance.Timeout = 20 * time.Second
	strategies := map[string]sarama.BalanceStrategy{
		"": sarama.NewBalanceStrategyRange(), "range": sarama.NewBalanceStrategyRange(),
		"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	}
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[request.Assignor]}
	config.Consumer.Group.InstanceId = request.InstanceID
	group, err := sarama.NewConsumerGroup(bootstrap, request.Group, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	opened := &member{events: newMemberEvents(request.Member), group: group, stop: stop, done: make(chan struct{}), marking: request.AutoCommit}
	members[request.Member] = opened
	go func() {
		for failure := range group.Errors() {
			fmt.Fprintln(os.Stderr, "consumer group:", failure)
		}
	}()
	go func() {
		defer close(opened.done)
		for ctx.Err() == nil {
			if err := group.Consume(ctx, request.Topics, opened); err != nil && ctx.Err() == nil {
				opened.events.failed(errorOf(err))
				return
			}
		}
	}()
	return nil, nil
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	m.session = session
	m.lock.Unlock()
	m.events.assigned(session.Claims())
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	m.events.revoked(session.Claims())
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.events.records([]Record{recordOf(message)})
			if m.marking {
				session.MarkMessage(message, "")
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) close() {
	m.stop()
	<-m.done
	m.group.Close()
}

func memberCommit(request *Request) (any, error) {
	one := members[request.Member]
	one.lock.Lock()
	session := one.session
	one.lock.Unlock()
	for topic, partitions := range request.offsetsByTopic() {
		for partition, offset := range partitions {
			// Marking only moves forward and resetting only back; what was marked is forgotten first.
			session.ResetOffset(topic, partition, offset, request.Metadata)
			session.MarkOffset(topic, partition, offset, request.Metadata)
		}
	}
	session.Commit()
	return nil, nil
}

func memberClose(request *Request) (any, error) {
	members[request.Member].close()
	delete(members, request.Member)
	return nil, nil
}

func createTopic(request *Request) (any, error) {
	configs := map[string]*string{}
	for name, value := range request.Configs {
		configs[name] = &value
	}
	return nil, admin().CreateTopic(request.Topic, &sarama.TopicDetail{
		NumPartitions: int32(request.partitionCount()), ReplicationFactor: int16(numberOr(request.ReplicationFactor, 1)), ConfigEntries: configs,
	}, false)
}

func deleteTopic(request *Request) (any, error) { return nil, admin().DeleteTopic(request.Topic) }

func listTopics(*Request) (any, error) {
	found, err := admin().ListTopics()
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	return object{"topics": names}, err
}

func describeTopic(request *Request) (any, error) {
	found, err := admin().DescribeTopics([]string{request.Topic})
	if err != nil {
		return nil, err
	}
	if found[0].Err != sarama.ErrNoError {
		return nil, found[0].Err
	}
	partitions := map[int32]any{}
	for _, one := range found[0].Partitions {
		partitions[one.ID] = object{"leader": one.Leader, "replicas": one.Replicas, "isr": one.Isr}
	}
	return object{"partitions": partitions}, nil
}

func createPartitions(request *Request) (any, error) {
	return nil, admin().CreatePartitions(request.Topic, int32(request.Total), nil, false)
}

func describeConfigs(request *Request) (any, error) {
	kind := sarama.TopicResource
	if request.Kind == "broker" {
		kind = sarama.BrokerResource
	}
	entries, err := admin().DescribeConfig(sarama.ConfigResource{Type: kind, Name: request.Name})
	configs := map[string]string{}
	for _, entry := range entries {
		configs[entry.Name] = entry.Value
	}
	return object{"configs": configs}, err
}

func alterConfigs(request *Request) (any, error) {
	if !baseConfig().Version.IsAtLeast(sarama.V2_3_0_0) {
		entries := map[string]*string{}
		for name, value := range request.Configs {
			entries[name] = &value
		}
		return nil, admin().AlterConfig(sarama.TopicResource, request.Topic, entries, false)
	}
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range request.Configs {
		entries[name] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
	}
	return nil, admin().IncrementalAlterConfig(sarama.TopicResource, request.Topic, entries, false)
}

func listGroups(*Request) (any, error) {
	found, err := admin().ListConsumerGroups()
	names := []string{}
	for name := range found {
		names = append(names, name)
	}
	return object{"groups": names}, err
}

func describeGroup(request *Request) (any, error) {
	found, err := admin().DescribeConsumerGroups([]string{request.Group})
	if err != nil {
		return nil, err
	}
	group := found[0]
	if group.Err != sarama.ErrNoError {
		return nil, group.Err
	}
	described := []object{}
	for _, one := range group.Members {
		partitions := map[string][]int32{}
		if assigned, err := one.GetMemberAssignment(); err == nil && assigned != nil {
			partitions = assigned.Topics
		}
		described = append(described, object{"client_id": one.ClientId, "instance_id": one.GroupInstanceId, "partitions": pairs(partitions)})
	}
	return object{"state": group.State, "protocol": group.Protocol, "members": described}, nil
}

func deleteGroup(request *Request) (any, error) {
	return nil, admin().DeleteConsumerGroup(request.Group)
}

func groupOffsets(request *Request) (any, error) {
	found, err := admin().ListConsumerGroupOffsets(request.Group, nil)
	if err != nil {
		return nil, err
	}
	if found.Err != sarama.ErrNoError {
		return nil, found.Err
	}
	offsets := map[string]map[int32]any{}
	for topic, partitions := range found.Blocks {
		offsets[topic] = map[int32]any{}
		for partition, block := range partitions {
			if block.Offset >= 0 {
				offsets[topic][partition] = object{"offset": block.Offset, "metadata": block.Metadata}
			}
		}
	}
	return object{"offsets": offsets}, nil
}

func alterGroupOffsets(request *Request) (any, error) {
	asked := map[string]map[int32]sarama.OffsetAndMetadata{}
	for topic, partitions := range request.offsetsByTopic() {
		asked[topic] = map[int32]sarama.OffsetAndMetadata{}
		for partition, offset := range partitions {
			asked[topic][partition] = sarama.OffsetAndMetadata{Offset: offset, LeaderEpoch: -1}
		}
	}
	response, err := admin().AlterConsumerGroupOffsets(request.Group, asked, nil)
	if err != nil {
		return nil, err
	}
	for _, partitions := range response.Errors {
		for _, code := range partitions {
			if code != sarama.ErrNoError {
				return nil, code
			}
		}
	}
	return nil, nil
}

func deleteGroupOffsets(request *Request) (any, error) {
	for _, partition := range request.partitionList() {
		if err := admin().DeleteConsumerGroupOffset(request.Group, request.Topic, partition); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func deleteRecords(request *Request) (any, error) {
	asked := request.offsetsByPartition()
	if err := admin().DeleteRecords(request.Topic, asked); err != nil {
		return nil, err
	}
	marks := map[int32]int64{}
	for partition := range asked {
		low, err := clientOf.GetOffset(request.Topic, partition, sarama.OffsetOldest)
		if err != nil {
			return nil, err
		}
		marks[partition] = low
	}
	return object{"low_watermarks": marks}, nil
}

func listOffsets(request *Request) (any, error) {
	admin()
	// The client's metadata may be older than the topic.
	if err := clientOf.RefreshMetadata(request.Topic); err != nil {
		return nil, err
	}
	offsets := map[string]int64{}
	for text, raw := range request.At {
		when, timestamp := whenOf(raw)
		switch when {
		case "earliest":
			timestamp = sarama.OffsetOldest
		case "latest":
			timestamp = sarama.OffsetNewest
		}
		offset, err := clientOf.GetOffset(request.Topic, partitionOf(text), timestamp)
		if err != nil {
			return nil, err
		}
		offsets[text] = offset
	}
	return object{"offsets": offsets}, nil
}

func describeCluster(*Request) (any, error) {
	found, controller, err := admin().DescribeCluster()
	if err != nil {
		return nil, err
	}
	brokers := []object{}
	for _, broker := range found {
		host, port := splitAddress(broker.Addr())
		brokers = append(brokers, object{"id": broker.ID(), "host": host, "port": port})
	}
	return object{"cluster_id": nil, "controller": controller, "brokers": brokers}, nil
}
