// Driver of franz-go: one function an operation of DRIVERS.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	bootstrap []string
	members   = map[string]*member{}
	adminOnce sync.Once
	adminOf   *kadm.Client
)

// By default it does not ask for metadata twice in 5 s, and answers admin calls from what it has.
var freshMetadata = kgo.MetadataMinAge(50 * time.Millisecond)

func main() {
	bootstrap = strings.Split(os.Args[1], ",")
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
	var kafka *kerr.Error
	if errors.As(err, &kafka) {
		return &ErrorReply{Code: kafka.Code, Message: err.Error()}
	}
	return &ErrorReply{Code: fmt.Sprintf("%T", err), Message: err.Error()}
}

func soon() context.Context {
	ctx, _ := context.WithTimeout(context.Background(), 30*time.Second)
	return ctx
}

func admin() *kadm.Client {
	adminOnce.Do(func() {
		client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), encryption, login, logger, freshMetadata)
		if err != nil {
			panic(err)
		}
		adminOf = kadm.NewClient(client)
	})
	return adminOf
}

func info(*Request) (any, error) {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return object{"version": module.Version}, nil
		}
	}
	return object{"version": "unknown"}, nil
}

// requestTimeout is how long an answer is waited for; a Produce has the broker's timeout on top.
func requestTimeout(request *Request) []kgo.Opt {
	if request.RequestTimeoutMs == 0 {
		return nil
	}
	timeout := time.Duration(request.RequestTimeoutMs) * time.Millisecond
	return []kgo.Opt{kgo.RequestTimeoutOverhead(timeout / 2), kgo.ProduceRequestTimeout(timeout / 2)}
}

func recordOf(record *kgo.Record) Record {
	headers := []Header{}
	for _, header := range record.Headers {
		headers = append(headers, Header{header.Key, header.Value})
	}
	timestamp := record.Timestamp.UnixMilli()
	kinds := map[int8]string{0: "create", 1: "append"}
	var kind *string
	if name, found := kinds[record.Attrs.TimestampType()]; found {
		kind = &name
	}
	return Record{
		Topic: record.Topic, Partition: &record.Partition, Offset: record.Offset, Timestamp: &timestamp,
		TimestampType: kind, Key: record.Key, Value: record.Value, Headers: headers,
	}
}

func produce(request *Request) (any, error) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	acks := map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks(), "": kgo.AllISRAcks()}
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap...), encryption, login, logger, freshMetadata, kgo.RequiredAcks(acks[request.Acks]),
		kgo.ProducerBatchCompression(codecs[codecOr(request)]), kgo.ProducerLinger(20 * time.Millisecond),
		// No RecordDeliveryTimeout: it counts from the record's own timestamp, so old ones never go out.
		kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(20),
	}
	if !request.Idempotence {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if request.MaxRequestBytes != 0 {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(request.MaxRequestBytes)))
	}
	if len(request.Records) > 0 && request.Records[0].Partition != nil {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := kgo.NewClient(append(options, requestTimeout(request)...)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	results := make([]Result, len(request.Records))
	for position, record := range request.Records {
		sent := &kgo.Record{Topic: request.Topic, Key: record.Key, Value: record.Value}
		if record.Partition != nil {
			sent.Partition = *record.Partition
		}
		if record.Timestamp != nil {
			sent.Timestamp = time.UnixMilli(*record.Timestamp)
		}
		for _, header := range record.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		client.Produce(soon(), sent, func(done *kgo.Record, err error) {
			if err != nil {
				results[position].Error = errorOf(err)
			} else {
				results[position] = Result{Partition: done.Partition, Offset: done.Offset}
			}
		})
	}
	if err := client.Flush(soon()); err != nil {
		return nil, err
	}
	return object{"results": results}, nil
}

func consume(request *Request) (any, error) {
	partitions := map[int32]kgo.Offset{}
	for text, raw := range request.Starts {
		start := startOf(raw)
		offset := kgo.NewOffset().At(start.Offset)
		if start.Earliest {
			offset = kgo.NewOffset().AtStart()
		} else if start.Timestamp != nil {
			offset = kgo.NewOffset().AfterMilli(*start.Timestamp)
		}
		partitions[partitionOf(text)] = offset
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap...), encryption, login, logger, freshMetadata, kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: partitions}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if request.MaxPartitionBytes != 0 {
		options = append(options, kgo.FetchMaxPartitionBytes(int32(request.MaxPartitionBytes)), kgo.FetchMaxBytes(int32(request.MaxPartitionBytes)))
	}
	client, err := kgo.NewClient(append(options, requestTimeout(request)...)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(numberOr(request.TimeoutMs, 20000))*time.Millisecond)
	defer cancel()
	records := []Record{}
	for len(records) < request.Count {
		fetches := client.PollRecords(ctx, request.Count-len(records))
		if ctx.Err() != nil {
			return nil, timeoutError(len(records), request.Count)
		}
		if failures := fetches.Errors(); len(failures) > 0 {
			return nil, failures[0].Err
		}
		fetches.EachRecord(func(record *kgo.Record) { records = append(records, recordOf(record)) })
	}
	return object{"records": records}, nil
}

type member struct {
	client *kgo.Client
	stop   context.CancelFunc
	done   chan struct{}
}

func memberOpen(request *Request) (any, error) {
	events := newMemberEvents(request.Member)
	balancers := map[string]kgo.GroupBalancer{
		"": kgo.RangeBalancer(), "range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	// A callback of one's own takes the place of the one that commits; it has to do that itself.
	revoked := func(ctx context.Context, client *kgo.Client, partitions map[string][]int32) {
		if request.AutoCommit {
			client.CommitUncommittedOffsets(ctx)
		}
		events.revoked(partitions)
	}
	start := kgo.NewOffset().AtStart()
	if request.Reset == "latest" {
		start = kgo.NewOffset().AtEnd()
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap...), encryption, login, logger, freshMetadata, kgo.ClientID(request.Member), kgo.ConsumerGroup(request.Group),
		kgo.ConsumeTopics(request.Topics...), kgo.Balancers(balancers[request.Assignor]),
		kgo.ConsumeResetOffset(start), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.SessionTimeout(time.Duration(numberOr(request.SessionTimeoutMs, 10000)) * time.Millisecond),
		kgo.HeartbeatInterval(200 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) { events.assigned(partitions) }),
		kgo.OnPartitionsRevoked(revoked), kgo.OnPartitionsLost(revoked),
	}
	if !request.AutoCommit {
		options = append(options, kgo.DisableAutoCommit())
	}
	if request.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if request.InstanceID != "" {
		options = append(options, kgo.InstanceID(request.InstanceID))
	}
	client, err := kgo.NewClient(append(options, requestTimeout(request)...)...)
	if err != nil {
		return nil, err
	}
	stopping, stop := context.WithCancel(context.Background())
	opened := &member{client: client, stop: stop, done: make(chan struct{})}
	members[request.Member] = opened
	go func() {
		defer close(opened.done)
		// What a poll returned counts as processed, for auto commit, when the next one begins.
		records := []Record{}
		for stopping.Err() == nil || len(records) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			fetches := client.PollFetches(ctx)
			cancel()
			for _, failure := range fetches.Errors() {
				if !errors.Is(failure.Err, context.DeadlineExceeded) {
					events.failed(errorOf(failure.Err))
				}
			}
			records = []Record{}
			fetches.EachRecord(func(record *kgo.Record) { records = append(records, recordOf(record)) })
			events.records(records)
		}
	}()
	return nil, nil
}

func (m *member) close() {
	m.stop()
	<-m.done
	m.client.Close()
}

func memberCommit(request *Request) (any, error) {
	asked := map[string]map[int32]kgo.EpochOffset{}
	for topic, partitions := range request.offsetsByTopic() {
		asked[topic] = map[int32]kgo.EpochOffset{}
		for partition, offset := range partitions {
			asked[topic][partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
	}
	ctx := kgo.PreCommitFnContext(soon(), func(commit *kmsg.OffsetCommitRequest) error {
		for t := range commit.Topics {
			for p := range commit.Topics[t].Partitions {
				commit.Topics[t].Partitions[p].Metadata = &request.Metadata
			}
		}
		return nil
	})
	var failure error
	members[request.Member].client.CommitOffsetsSync(ctx, asked,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			failure = err
			if err != nil {
				return
			}
			for _, topic := range response.Topics {
				for _, partition := range topic.Partitions {
					if partition.ErrorCode != 0 {
						failure = kerr.ErrorForCode(partition.ErrorCode)
					}
				}
			}
		})
	return nil, failure
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
	_, err := admin().CreateTopic(soon(), int32(request.partitionCount()), int16(numberOr(request.ReplicationFactor, 1)), configs, request.Topic)
	return nil, err
}

func deleteTopic(request *Request) (any, error) {
	_, err := admin().DeleteTopic(soon(), request.Topic)
	return nil, err
}

func listTopics(*Request) (any, error) {
	found, err := admin().ListTopics(soon())
	return object{"topics": found.Names()}, err
}

func describeTopic(request *Request) (any, error) {
	found, err := admin().ListTopics(soon(), request.Topic)
	if err == nil {
		err = found[request.Topic].Err
	}
	if err != nil {
		return nil, err
	}
	partitions := map[int32]any{}
	for _, one := range found[request.Topic].Partitions {
		partitions[one.Partition] = object{"leader": one.Leader, "replicas": one.Replicas, "isr": one.ISR}
	}
	return object{"partitions": partitions}, nil
}

func createPartitions(request *Request) (any, error) {
	responses, err := admin().UpdatePartitions(soon(), request.Total, request.Topic)
	if err == nil {
		err = responses.Error()
	}
	return nil, err
}

func describeConfigs(request *Request) (any, error) {
	var found kadm.ResourceConfigs
	var err error
	if request.Kind == "broker" {
		found, err = admin().DescribeBrokerConfigs(soon(), partitionOf(request.Name))
	} else {
		found, err = admin().DescribeTopicConfigs(soon(), request.Name)
	}
	if err != nil {
		return nil, err
	}
	configs := map[string]*string{}
	for _, resource := range found {
		if resource.Err != nil {
			return nil, resource.Err
		}
		for _, config := range resource.Configs {
			configs[config.Key] = config.Value
		}
	}
	return object{"configs": configs}, nil
}

func alterConfigs(request *Request) (any, error) {
	asked := []kadm.AlterConfig{}
	for name, value := range request.Configs {
		asked = append(asked, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: &value})
	}
	responses, err := admin().AlterTopicConfigs(soon(), asked, request.Topic)
	if err != nil {
		return nil, err
	}
	for _, response := range responses {
		if response.Err != nil {
			return nil, response.Err
		}
	}
	return nil, nil
}

func listGroups(*Request) (any, error) {
	found, err := admin().ListGroups(soon())
	return object{"groups": found.Groups()}, err
}

func describeGroup(request *Request) (any, error) {
	found, err := admin().DescribeGroups(soon(), request.Group)
	if err != nil {
		return nil, err
	}
	group := found[request.Group]
	if group.Err != nil {
		return nil, group.Err
	}
	described := []object{}
	for _, one := range group.Members {
		partitions := map[string][]int32{}
		if assigned, ok := one.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				partitions[topic.Topic] = topic.Partitions
			}
		}
		described = append(described, object{"client_id": one.ClientID, "instance_id": one.InstanceID, "partitions": pairs(partitions)})
	}
	return object{"state": group.State, "protocol": group.Protocol, "members": described}, nil
}

func deleteGroup(request *Request) (any, error) {
	_, err := admin().DeleteGroup(soon(), request.Group)
	return nil, err
}

func groupOffsets(request *Request) (any, error) {
	found, err := admin().FetchOffsets(soon(), request.Group)
	if err != nil {
		return nil, err
	}
	offsets := map[string]map[int32]any{}
	found.Each(func(one kadm.OffsetResponse) {
		if offsets[one.Topic] == nil {
			offsets[one.Topic] = map[int32]any{}
		}
		offsets[one.Topic][one.Partition] = object{"offset": one.At, "metadata": one.Metadata}
	})
	return object{"offsets": offsets}, nil
}

func alterGroupOffsets(request *Request) (any, error) {
	asked := kadm.Offsets{}
	for topic, partitions := range request.offsetsByTopic() {
		for partition, offset := range partitions {
			asked.Add(kadm.Offset{Topic: topic, Partition: partition, At: offset, LeaderEpoch: -1})
		}
	}
	return nil, admin().CommitAllOffsets(soon(), request.Group, asked)
}

func deleteGroupOffsets(request *Request) (any, error) {
	set := kadm.TopicsSet{}
	set.Add(request.Topic, request.partitionList()...)
	responses, err := admin().DeleteOffsets(soon(), request.Group, set)
	if err == nil {
		err = responses.Error()
	}
	return nil, err
}

func deleteRecords(request *Request) (any, error) {
	asked := kadm.Offsets{}
	for partition, offset := range request.offsetsByPartition() {
		asked.Add(kadm.Offset{Topic: request.Topic, Partition: partition, At: offset})
	}
	responses, err := admin().DeleteRecords(soon(), asked)
	if err == nil {
		err = responses.Error()
	}
	if err != nil {
		return nil, err
	}
	marks := map[int32]int64{}
	responses.Each(func(one kadm.DeleteRecordsResponse) { marks[one.Partition] = one.LowWatermark })
	return object{"low_watermarks": marks}, nil
}

func listOffsets(request *Request) (any, error) {
	offsets := map[string]int64{}
	for text, raw := range request.At {
		when, timestamp := whenOf(raw)
		var found kadm.ListedOffsets
		var err error
		switch when {
		case "earliest":
			found, err = admin().ListStartOffsets(soon(), request.Topic)
		case "latest":
			found, err = admin().ListEndOffsets(soon(), request.Topic)
		case "max_timestamp":
			found, err = admin().ListMaxTimestampOffsets(soon(), request.Topic)
		default:
			// kadm answers the end offset where no record is that late; the raw answer has -1.
			found, err = admin().ListOffsetsAfterMilli(soon(), timestamp, request.Topic)
		}
		if err != nil {
			return nil, err
		}
		one, _ := found.Lookup(request.Topic, partitionOf(text))
		if one.Err != nil {
			return nil, one.Err
		}
		offsets[text] = one.Offset
	}
	return object{"offsets": offsets}, nil
}

func describeCluster(*Request) (any, error) {
	found, err := admin().BrokerMetadata(soon())
	if err != nil {
		return nil, err
	}
	brokers := []object{}
	for _, broker := range found.Brokers {
		brokers = append(brokers, object{"id": broker.NodeID, "host": broker.Host, "port": broker.Port})
	}
	return object{"cluster_id": found.Cluster, "controller": found.Controller, "brokers": brokers}, nil
}
