// Driver of segmentio/kafka-go: one function an operation of DRIVERS.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

var (
	bootstrap []string
	members   = map[string]*member{}
	client    *kafka.Client
)

func main() {
	bootstrap = strings.Split(os.Args[1], ",")
	client = &kafka.Client{Addr: kafka.TCP(bootstrap...), Timeout: 30 * time.Second, Transport: access()}
	serve(map[string]Operation{
		"info": info, "produce": produce, "consume": consume,
		"member_open": memberOpen, "member_commit": memberCommit, "member_close": memberClose,
		"create_topic": createTopic, "delete_topic": deleteTopic, "list_topics": listTopics,
		"describe_topic": describeTopic, "create_partitions": createPartitions,
		"describe_configs": describeConfigs, "alter_configs": alterConfigs,
		"list_groups": listGroups, "describe_group": describeGroup, "delete_group": deleteGroup,
		"group_offsets": groupOffsets, "alter_group_offsets": alterGroupOffsets,
		"delete_group_offsets": deleteGroupOffsets,
		"list_offsets":         listOffsets, "describe_cluster": describeCluster,
	}, errorOf)
	for _, one := range members {
		one.close()
	}
}

func errorOf(err error) *ErrorReply {
	var several kafka.WriteErrors
	if errors.As(err, &several) {
		for _, one := range several {
			if one != nil {
				return errorOf(one)
			}
		}
	}
	var tooLarge kafka.MessageTooLargeError
	if errors.As(err, &tooLarge) {
		return &ErrorReply{Code: "MESSAGE_TOO_LARGE", Message: "refused by the client"}
	}
	var code kafka.Error
	if errors.As(err, &code) {
		return &ErrorReply{Code: int(code), Message: err.Error()}
	}
	return &ErrorReply{Code: fmt.Sprintf("%T", err), Message: err.Error()}
}

func failed(code any, err error) *ErrorReply {
	if err == nil {
		return nil
	}
	return errorOf(err)
}

func info(*Request) (any, error) {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/segmentio/kafka-go" {
			return object{"version": module.Version}, nil
		}
	}
	return object{"version": "unknown"}, nil
}

type sentRecord struct {
	position  int
	partition *int32
}

func produce(request *Request) (any, error) {
	codecs := map[string]kafka.Compression{"none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	acks := map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll, "": kafka.RequireAll}
	results := make([]Result, len(request.Records))
	var lock sync.Mutex
	keyed := kafka.Murmur2Balancer{}
	transport := access()
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap...), Topic: request.Topic, RequiredAcks: acks[request.Acks],
		Compression: codecs[codecOr(request)], BatchTimeout: 20 * time.Millisecond, BatchSize: 1000,
		BatchBytes: int64(numberOr(request.MaxRequestBytes, 1048576)), AllowAutoTopicCreation: true,
		MaxAttempts: 4, WriteBackoffMin: 20 * time.Millisecond, WriteBackoffMax: 200 * time.Millisecond, Transport: transport,
		Balancer: kafka.BalancerFunc(func(message kafka.Message, partitions ...int) int {
			if wanted := message.WriterData.(sentRecord).partition; wanted != nil {
				return int(*wanted)
			}
			return keyed.Balance(message, partitions...)
		}),
		Completion: func(messages []kafka.Message, err error) {
			lock.Lock()
			defer lock.Unlock()
			for _, message := range messages {
				position := message.WriterData.(sentRecord).position
				results[position] = Result{Partition: int32(message.Partition), Offset: message.Offset, Error: failed(nil, err)}
			}
		},
	}
	messages := []kafka.Message{}
	for position, record := range request.Records {
		message := kafka.Message{Key: record.Key, Value: record.Value, WriterData: sentRecord{position, record.Partition}}
		if record.Timestamp != nil {
			message.Time = time.UnixMilli(*record.Timestamp)
		}
		for _, header := range record.Headers {
			message.Headers = append(message.Headers, kafka.Header{Key: header.Name, Value: header.Value})
		}
		messages = append(messages, message)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	writeError := writer.WriteMessages(ctx, messages...)
	// Its README leaves it to the caller to try again while a topic is being created.
	for (errors.Is(writeError, kafka.UnknownTopicOrPartition) || errors.Is(writeError, kafka.LeaderNotAvailable)) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		writeError = writer.WriteMessages(ctx, messages...)
	}
	writer.Close()
	lock.Lock()
	defer lock.Unlock()
	var several kafka.WriteErrors
	if writeError != nil && !errors.As(writeError, &several) {
		for position := range results {
			results[position].Error = errorOf(writeError)
		}
	}
	return object{"results": results}, nil
}

func recordOf(message kafka.Message) Record {
	headers := []Header{}
	for _, header := range message.Headers {
		headers = append(headers, Header{header.Key, header.Value})
	}
	partition, timestamp := int32(message.Partition), message.Time.UnixMilli()
	return Record{
		Topic: message.Topic, Partition: &partition, Offset: message.Offset, Timestamp: &timestamp,
		Key: message.Key, Value: message.Value, Headers: headers,
	}
}

func readerOf(topic string, partition int, maxBytes int) *kafka.Reader {
	return kafka.NewReader(kafka.ReaderConfig{
		Brokers: bootstrap, Topic: topic, Partition: partition, MinBytes: 1, Dialer: dialer(""),
		MaxBytes: numberOr(maxBytes, 10e6), MaxWait: 100 * time.Millisecond, MaxAttempts: 3,
		ReadBackoffMin: 10 * time.Millisecond, ReadBackoffMax: 100 * time.Millisecond,
		ErrorLogger: kafka.LoggerFunc(func(text string, values ...any) { fmt.Fprintf(os.Stderr, text+"\n", values...) }),
	})
}

func consume(request *Request) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(numberOr(request.TimeoutMs, 20000))*time.Millisecond)
	messages, failures := make(chan kafka.Message), make(chan error)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for text, raw := range request.Starts {
		reader := readerOf(request.Topic, int(partitionOf(text)), request.MaxPartitionBytes)
		start := startOf(raw)
		running.Add(1)
		go func() {
			defer running.Done()
			defer reader.Close()
			var err error
			if start.Timestamp != nil {
				err = reader.SetOffsetAt(ctx, time.UnixMilli(*start.Timestamp))
			} else if start.Earliest {
				err = reader.SetOffset(kafka.FirstOffset)
			} else {
				err = reader.SetOffset(start.Offset)
			}
			for err == nil {
				var message kafka.Message
				if message, err = reader.ReadMessage(ctx); err == nil {
					select {
					case messages <- message:
					case <-ctx.Done():
						return
					}
				}
			}
			select {
			case failures <- err:
			case <-ctx.Done():
			}
		}()
	}
	records := []Record{}
	for len(records) < request.Count {
		select {
		case message := <-messages:
			records = append(records, recordOf(message))
		case err := <-failures:
			return nil, err
		case <-ctx.Done():
			return nil, timeoutError(len(records), request.Count)
		}
	}
	return object{"records": records}, nil
}

type member struct {
	events     *MemberEvents
	group      *kafka.ConsumerGroup
	stop       context.CancelFunc
	done       chan struct{}
	lock       sync.Mutex
	generation *kafka.Generation
}

func memberOpen(request *Request) (any, error) {
	balancers := map[string]kafka.GroupBalancer{
		"": kafka.RangeGroupBalancer{}, "range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{},
	}
	start := kafka.FirstOffset
	if request.Reset == "latest" {
		start = kafka.LastOffset
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: request.Group, Brokers: bootstrap, Topics: request.Topics, StartOffset: start,
		Dialer:            dialer(request.Member),
		GroupBalancers:    []kafka.GroupBalancer{balancers[request.Assignor]},
		HeartbeatInterval: 200 * time.Millisecond, JoinGroupBackoff: 200 * time.Millisecond,
		SessionTimeout:   time.Duration(numberOr(request.SessionTimeoutMs, 10000)) * time.Millisecond,
		RebalanceTimeout: 20 * time.Second,
		ErrorLogger:      kafka.LoggerFunc(func(text string, values ...any) { fmt.Fprintf(os.Stderr, text+"\n", values...) }),
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	opened := &member{events: newMemberEvents(request.Member), group: group, stop: stop, done: make(chan struct{})}
	members[request.Member] = opened
	go opened.run(ctx)
	return nil, nil
}

func (m *member) run(ctx context.Context) {
	defer close(m.done)
	for {
		generation, err := m.group.Next(ctx)
		if ctx.Err() != nil || errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "generation:", err)
			continue
		}
		m.lock.Lock()
		m.generation = generation
		m.lock.Unlock()
		assigned := map[string][]int32{}
		for topic, partitions := range generation.Assignments {
			for _, partition := range partitions {
				assigned[topic] = append(assigned[topic], int32(partition.ID))
			}
		}
		m.events.assigned(assigned)
		generation.Start(func(ctx context.Context) {
			<-ctx.Done()
			m.events.revoked(assigned)
		})
		for topic, partitions := range generation.Assignments {
			for _, partition := range partitions {
				generation.Start(func(ctx context.Context) { m.read(ctx, topic, partition) })
			}
		}
	}
}

func (m *member) read(ctx context.Context, topic string, partition kafka.PartitionAssignment) {
	reader := readerOf(topic, partition.ID, 0)
	defer reader.Close()
	reader.SetOffset(partition.Offset)
	for {
		message, err := reader.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.events.failed(errorOf(err))
			return
		}
		m.events.records([]Record{recordOf(message)})
	}
}

func (m *member) close() {
	m.stop()
	m.group.Close()
	<-m.done
}

func commitOf(request *Request) map[string][]kafka.OffsetCommit {
	asked := map[string][]kafka.OffsetCommit{}
	for topic, partitions := range request.offsetsByTopic() {
		for partition, offset := range partitions {
			asked[topic] = append(asked[topic], kafka.OffsetCommit{Partition: int(partition), Offset: offset, Metadata: request.Metadata})
		}
	}
	return asked
}

func committed(response *kafka.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, partitions := range response.Topics {
		for _, partition := range partitions {
			if partition.Error != nil {
				return partition.Error
			}
		}
	}
	return nil
}

func memberCommit(request *Request) (any, error) {
	one := members[request.Member]
	one.lock.Lock()
	generation := one.generation
	one.lock.Unlock()
	return nil, committed(client.OffsetCommit(context.Background(), &kafka.OffsetCommitRequest{
		GroupID: generation.GroupID, GenerationID: int(generation.ID), MemberID: generation.MemberID, Topics: commitOf(request),
	}))
}

func memberClose(request *Request) (any, error) {
	members[request.Member].close()
	delete(members, request.Member)
	return nil, nil
}

func createTopic(request *Request) (any, error) {
	configs := []kafka.ConfigEntry{}
	for name, value := range request.Configs {
		configs = append(configs, kafka.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	response, err := client.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: request.Topic, NumPartitions: request.partitionCount(), ReplicationFactor: numberOr(request.ReplicationFactor, 1), ConfigEntries: configs,
	}}})
	if err == nil {
		err = response.Errors[request.Topic]
	}
	return nil, err
}

func deleteTopic(request *Request) (any, error) {
	response, err := client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{request.Topic}})
	if err == nil {
		err = response.Errors[request.Topic]
	}
	return nil, err
}

// metadata asks on a connection of its own: the client's shared transport answers from a cache.
func metadata(topics ...string) (*kafka.MetadataResponse, error) {
	transport := access()
	defer transport.CloseIdleConnections()
	fresh := &kafka.Client{Addr: kafka.TCP(bootstrap...), Timeout: 30 * time.Second, Transport: transport}
	return fresh.Metadata(context.Background(), &kafka.MetadataRequest{Topics: topics})
}

func listTopics(*Request) (any, error) {
	found, err := metadata()
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, topic := range found.Topics {
		names = append(names, topic.Name)
	}
	return object{"topics": names}, nil
}

func ids(brokers []kafka.Broker) []int {
	list := []int{}
	for _, broker := range brokers {
		list = append(list, broker.ID)
	}
	return list
}

func describeTopic(request *Request) (any, error) {
	found, err := metadata(request.Topic)
	if err == nil {
		err = found.Topics[0].Error
	}
	if err != nil {
		return nil, err
	}
	partitions := map[int]any{}
	for _, one := range found.Topics[0].Partitions {
		partitions[one.ID] = object{"leader": one.Leader.ID, "replicas": ids(one.Replicas), "isr": ids(one.Isr)}
	}
	return object{"partitions": partitions}, nil
}

func createPartitions(request *Request) (any, error) {
	response, err := client.CreatePartitions(context.Background(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: request.Topic, Count: int32(request.Total)}},
	})
	if err == nil {
		err = response.Errors[request.Topic]
	}
	return nil, err
}

func describeConfigs(request *Request) (any, error) {
	kind := kafka.ResourceTypeTopic
	if request.Kind == "broker" {
		kind = kafka.ResourceTypeBroker
	}
	response, err := client.DescribeConfigs(context.Background(), &kafka.DescribeConfigsRequest{
		Resources:       []kafka.DescribeConfigRequestResource{{ResourceType: kind, ResourceName: request.Name}},
		IncludeSynonyms: true, IncludeDocumentation: true,
	})
	if err == nil {
		err = response.Resources[0].Error
	}
	if err != nil {
		return nil, err
	}
	configs := map[string]string{}
	for _, entry := range response.Resources[0].ConfigEntries {
		configs[entry.ConfigName] = entry.ConfigValue
	}
	return object{"configs": configs}, nil
}

func alterConfigs(request *Request) (any, error) {
	asked := []kafka.IncrementalAlterConfigsRequestConfig{}
	for name, value := range request.Configs {
		asked = append(asked, kafka.IncrementalAlterConfigsRequestConfig{Name: name, Value: value, ConfigOperation: kafka.ConfigOperationSet})
	}
	response, err := client.IncrementalAlterConfigs(context.Background(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: request.Topic, Configs: asked}},
	})
	if err == nil {
		err = response.Resources[0].Error
	}
	return nil, err
}

func listGroups(*Request) (any, error) {
	response, err := client.ListGroups(context.Background(), &kafka.ListGroupsRequest{})
	if err == nil {
		err = response.Error
	}
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, group := range response.Groups {
		names = append(names, group.GroupID)
	}
	return object{"groups": names}, nil
}

func describeGroup(request *Request) (any, error) {
	response, err := client.DescribeGroups(context.Background(), &kafka.DescribeGroupsRequest{GroupIDs: []string{request.Group}})
	if err == nil {
		err = response.Groups[0].Error
	}
	if err != nil {
		return nil, err
	}
	group := response.Groups[0]
	described := []object{}
	for _, one := range group.Members {
		partitions := map[string][]int32{}
		for _, topic := range one.MemberAssignments.Topics {
			for _, partition := range topic.Partitions {
				partitions[topic.Topic] = append(partitions[topic.Topic], int32(partition))
			}
		}
		described = append(described, object{"client_id": one.ClientID, "instance_id": nil, "partitions": pairs(partitions)})
	}
	return object{"state": group.GroupState, "protocol": nil, "members": described}, nil
}

func deleteGroup(request *Request) (any, error) {
	response, err := client.DeleteGroups(context.Background(), &kafka.DeleteGroupsRequest{GroupIDs: []string{request.Group}})
	if err == nil {
		err = response.Errors[request.Group]
	}
	return nil, err
}

func groupOffsets(request *Request) (any, error) {
	response, err := client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{GroupID: request.Group})
	if err == nil {
		err = response.Error
	}
	if err != nil {
		return nil, err
	}
	offsets := map[string]map[string]any{}
	for topic, partitions := range response.Topics {
		offsets[topic] = map[string]any{}
		for _, one := range partitions {
			offsets[topic][strconv.Itoa(one.Partition)] = object{"offset": one.CommittedOffset, "metadata": one.Metadata}
		}
	}
	return object{"offsets": offsets}, nil
}

func alterGroupOffsets(request *Request) (any, error) {
	return nil, committed(client.OffsetCommit(context.Background(), &kafka.OffsetCommitRequest{
		GroupID: request.Group, GenerationID: -1, Topics: commitOf(request),
	}))
}

func deleteGroupOffsets(request *Request) (any, error) {
	partitions := []int{}
	for _, partition := range request.partitionList() {
		partitions = append(partitions, int(partition))
	}
	response, err := client.OffsetDelete(context.Background(), &kafka.OffsetDeleteRequest{
		GroupID: request.Group, Topics: map[string][]int{request.Topic: partitions},
	})
	if err == nil {
		err = response.Error
	}
	if err != nil {
		return nil, err
	}
	for _, done := range response.Topics[request.Topic] {
		if done.Error != nil {
			return nil, done.Error
		}
	}
	return nil, nil
}

func listOffsets(request *Request) (any, error) {
	offsets := map[string]int64{}
	for text, raw := range request.At {
		when, timestamp := whenOf(raw)
		partition := int(partitionOf(text))
		asked := kafka.OffsetRequest{Partition: partition, Timestamp: timestamp}
		switch when {
		case "earliest":
			asked = kafka.FirstOffsetOf(partition)
		case "latest":
			asked = kafka.LastOffsetOf(partition)
		}
		response, err := client.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{request.Topic: {asked}},
		})
		if err != nil {
			return nil, err
		}
		found := response.Topics[request.Topic][0]
		if found.Error != nil {
			return nil, found.Error
		}
		switch when {
		case "earliest":
			offsets[text] = found.FirstOffset
		case "latest":
			offsets[text] = found.LastOffset
		default:
			for offset := range found.Offsets {
				offsets[text] = offset
			}
		}
	}
	return object{"offsets": offsets}, nil
}

func describeCluster(*Request) (any, error) {
	found, err := metadata()
	if err != nil {
		return nil, err
	}
	brokers := []object{}
	for _, broker := range found.Brokers {
		brokers = append(brokers, object{"id": broker.ID, "host": broker.Host, "port": broker.Port})
	}
	return object{"cluster_id": found.ClusterID, "controller": found.Controller.ID, "brokers": brokers}, nil
}
