// Transactions with franz-go: a part of its driver.
package main

import (
	"bytes"
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer, and the session that a transforming one lives in (as the library wants it).
type transactional struct {
	client  *kgo.Client
	session *kgo.GroupTransactSession
}

var producers = map[string]*transactional{}

func init() {
	for name, operation := range map[string]Operation{
		"txn_open": txnOpen, "txn_begin": txnBegin, "txn_send": txnSend, "txn_transform": txnTransform,
		"txn_commit": txnCommit, "txn_abort": txnAbort, "txn_close": txnClose, "read_until": readUntil,
	} {
		moreOperations[name] = operation
	}
}

func txnOpen(request *Request) (any, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap...), encryption, login, logger, freshMetadata, kgo.TransactionalID(request.TransactionalID),
		kgo.TransactionTimeout(time.Duration(numberOr(request.TimeoutMs, 60000)) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
	}
	options = append(options, requestTimeout(request)...)
	opened := &transactional{}
	var err error
	if request.Group == "" {
		opened.client, err = kgo.NewClient(options...)
	} else {
		options = append(options,
			kgo.ConsumerGroup(request.Group), kgo.ConsumeTopics(request.Source),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(100*time.Millisecond),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if opened.session, err = kgo.NewGroupTransactSession(options...); err == nil {
			opened.client = opened.session.Client()
		}
	}
	if err != nil {
		return nil, err
	}
	// The library asks for its producer id when it is first needed; asking now fences others now.
	if _, _, err := opened.client.ProducerID(soon()); err != nil {
		opened.client.Close()
		return nil, err
	}
	producers[request.Producer] = opened
	return nil, nil
}

func txnBegin(request *Request) (any, error) {
	return nil, producers[request.Producer].client.BeginTransaction()
}

func txnSend(request *Request) (any, error) {
	client := producers[request.Producer].client
	records := []*kgo.Record{}
	for _, record := range request.Records {
		records = append(records, &kgo.Record{Topic: request.Topic, Partition: *record.Partition, Key: record.Key, Value: record.Value})
	}
	results := []Result{}
	for _, done := range client.ProduceSync(soon(), records...) {
		if done.Err != nil {
			results = append(results, Result{Error: errorOf(done.Err)})
		} else {
			results = append(results, Result{Partition: done.Record.Partition, Offset: done.Record.Offset})
		}
	}
	return object{"results": results}, nil
}

func txnTransform(request *Request) (any, error) {
	session := producers[request.Producer].session
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	records := []Record{}
	for len(records) < request.Count {
		fetches := session.PollRecords(ctx, request.Count-len(records))
		if ctx.Err() != nil {
			return nil, timeoutError(len(records), request.Count)
		}
		if failures := fetches.Errors(); len(failures) > 0 {
			return nil, failures[0].Err
		}
		fetches.EachRecord(func(record *kgo.Record) { records = append(records, recordOf(record)) })
	}
	if err := session.Begin(); err != nil {
		return nil, err
	}
	sent := []*kgo.Record{}
	for _, record := range records {
		value := append([]byte("seen "), record.Value...)
		sent = append(sent, &kgo.Record{Topic: request.Target, Partition: *record.Partition, Key: record.Key, Value: value})
	}
	if err := session.ProduceSync(soon(), sent...).FirstErr(); err != nil {
		return nil, err
	}
	return object{"records": records}, nil
}

// end ends a transaction; a session commits its offsets just before.
func (t *transactional) end(how kgo.TransactionEndTry) error {
	if t.session == nil {
		return t.client.EndTransaction(soon(), how)
	}
	committed, err := t.session.End(soon(), how)
	if err == nil && committed != bool(how) {
		return &OperationError{Code: "ABORTED", Message: "the session aborted what was to be committed"}
	}
	return err
}

func txnCommit(request *Request) (any, error) {
	return nil, producers[request.Producer].end(kgo.TryCommit)
}

func txnAbort(request *Request) (any, error) {
	return nil, producers[request.Producer].end(kgo.TryAbort)
}

func txnClose(request *Request) (any, error) {
	producers[request.Producer].client.Close()
	delete(producers, request.Producer)
	return nil, nil
}

func readUntil(request *Request) (any, error) {
	level := kgo.ReadUncommitted()
	if request.Isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	missing, starts := map[int32]bool{}, map[int32]kgo.Offset{}
	for _, partition := range request.partitionList() {
		missing[partition] = true
		starts[partition] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap...), encryption, login, logger, freshMetadata, kgo.FetchMaxWait(100*time.Millisecond), kgo.FetchIsolationLevel(level),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: starts}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(numberOr(request.TimeoutMs, 20000))*time.Millisecond)
	defer cancel()
	records := []Record{}
	for len(missing) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			break
		}
		if failures := fetches.Errors(); len(failures) > 0 {
			return nil, failures[0].Err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			if missing[record.Partition] {
				records = append(records, recordOf(record))
				if bytes.Equal(record.Value, request.Last) {
					delete(missing, record.Partition)
				}
			}
		})
	}
	return object{"records": records, "reached": len(missing) == 0}, nil
}
