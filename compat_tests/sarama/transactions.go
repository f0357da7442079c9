// Transactions with sarama: a part of its driver.
package main

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var producers = map[string]sarama.AsyncProducer{}

func init() {
	for name, operation := range map[string]Operation{
		"txn_open": txnOpen, "txn_begin": txnBegin, "txn_send": txnSend, "txn_transform": txnTransform,
		"txn_commit": txnCommit, "txn_abort": txnAbort, "txn_close": txnClose, "read_until": readUntil,
	} {
		moreOperations[name] = operation
	}
}

func txnOpen(request *Request) (any, error) {
	config := baseConfig()
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes, config.Producer.Return.Errors = true, true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	config.Producer.Transaction.ID = request.TransactionalID
	config.Producer.Transaction.Timeout = time.Duration(numberOr(request.TimeoutMs, 60000)) * time.Millisecond
	config.Producer.Transaction.Retry.Backoff = 20 * time.Millisecond
	config.Producer.Transaction.Retry.Max = 100
	producer, err := sarama.NewAsyncProducer(bootstrap, config)
	if err != nil {
		return nil, err
	}
	producers[request.Producer] = producer
	return nil, nil
}

func txnBegin(request *Request) (any, error) {
	return nil, producers[request.Producer].BeginTxn()
}

func txnCommit(request *Request) (any, error) {
	return nil, producers[request.Producer].CommitTxn()
}

func txnAbort(request *Request) (any, error) {
	return nil, producers[request.Producer].AbortTxn()
}

func txnClose(request *Request) (any, error) {
	producers[request.Producer].AsyncClose()
	delete(producers, request.Producer)
	return nil, nil
}

func sendAll(producer sarama.AsyncProducer, topic string, records []Record) ([]Result, error) {
	go func() {
		for position, record := range records {
			producer.Input() <- &sarama.ProducerMessage{
				Topic: topic, Partition: *record.Partition, Metadata: position,
				Key: sarama.ByteEncoder(record.Key), Value: sarama.ByteEncoder(record.Value),
			}
		}
	}()
	results := make([]Result, len(records))
	deadline := time.After(40 * time.Second)
	for range records {
		select {
		case done := <-producer.Successes():
			results[done.Metadata.(int)] = Result{Partition: done.Partition, Offset: done.Offset}
		case failed := <-producer.Errors():
			results[failed.Msg.Metadata.(int)].Error = errorOf(failed.Err)
		case <-deadline:
			return nil, timeoutError(0, len(records))
		}
	}
	return results, nil
}

func txnSend(request *Request) (any, error) {
	results, err := sendAll(producers[request.Producer], request.Topic, request.Records)
	if err != nil {
		return nil, err
	}
	return object{"results": results}, nil
}

// taker is a group member that ends its session once it has taken enough.
type taker struct {
	count    int
	stop     context.CancelFunc
	lock     sync.Mutex
	taken    []Record
	messages []*sarama.ConsumerMessage
}

func (t *taker) Setup(sarama.ConsumerGroupSession) error { return nil }

func (t *taker) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (t *taker) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, more := <-claim.Messages():
			if !more {
				return nil
			}
			t.lock.Lock()
			if len(t.taken) < t.count {
				t.taken = append(t.taken, recordOf(message))
				t.messages = append(t.messages, message)
			}
			if len(t.taken) >= t.count {
				t.stop()
			}
			t.lock.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func txnTransform(request *Request) (any, error) {
	config := baseConfig()
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	// How often it asks again for offsets that an open transaction may change.
	config.Metadata.Retry.Max = 100
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	group, err := sarama.NewConsumerGroup(bootstrap, request.Group, config)
	if err != nil {
		return nil, err
	}
	defer group.Close()
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	take := &taker{count: request.Count, stop: stop}
	if err := group.Consume(ctx, []string{request.Source}, take); err != nil && ctx.Err() == nil {
		return nil, err
	}
	if len(take.taken) < request.Count {
		return nil, timeoutError(len(take.taken), request.Count)
	}
	producer := producers[request.Producer]
	if err := producer.BeginTxn(); err != nil {
		return nil, err
	}
	sent := []Record{}
	for _, record := range take.taken {
		sent = append(sent, Record{Partition: record.Partition, Key: record.Key, Value: append([]byte("seen "), record.Value...)})
	}
	if _, err := sendAll(producer, request.Target, sent); err != nil {
		return nil, err
	}
	// The group's name alone: the member's session ended when it had enough.
	for _, message := range take.messages {
		if err := producer.AddMessageToTxn(message, request.Group, nil); err != nil {
			return nil, err
		}
	}
	return object{"records": take.taken}, nil
}

func readUntil(request *Request) (any, error) {
	config := baseConfig()
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	if request.Isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer(bootstrap, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	missing := map[int32]bool{}
	messages, stop := make(chan *sarama.ConsumerMessage), make(chan struct{})
	var running sync.WaitGroup
	defer running.Wait()
	defer close(stop)
	for _, index := range request.partitionList() {
		missing[index] = true
		partition, err := consumer.ConsumePartition(request.Topic, index, sarama.OffsetOldest)
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
				case <-stop:
					return
				}
			}
		}()
	}
	records := []Record{}
	deadline := time.After(time.Duration(numberOr(request.TimeoutMs, 20000)) * time.Millisecond)
	for len(missing) > 0 {
		select {
		case message := <-messages:
			if missing[message.Partition] {
				records = append(records, recordOf(message))
				if bytes.Equal(message.Value, request.Last) {
					delete(missing, message.Partition)
				}
			}
		case <-deadline:
			return object{"records": records, "reached": false}, nil
		}
	}
	return object{"records": records, "reached": true}, nil
}
