// What the drivers of the Go clients share: the request loop and the encoding of DRIVERS.md.
// Each driver is built from this file and the main.go of its client.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sort"
	"strconv"
	"sync"
)

type Header struct {
	Name  string
	Value []byte
}

func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

func (h *Header) UnmarshalJSON(text []byte) error {
	var pair [2]*string
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	h.Name, h.Value = *pair[0], nil
	if pair[1] != nil {
		value, err := base64.StdEncoding.DecodeString(*pair[1])
		h.Value = append([]byte{}, value...)
		return err
	}
	return nil
}

type Record struct {
	Topic         string   `json:"topic,omitempty"`
	Partition     *int32   `json:"partition"`
	Offset        int64    `json:"offset"`
	Timestamp     *int64   `json:"timestamp"`
	TimestampType *string  `json:"timestamp_type"`
	Key           []byte   `json:"key"`
	Value         []byte   `json:"value"`
	Headers       []Header `json:"headers"`
}

type ErrorReply struct {
	Code    any    `json:"code"`
	Message string `json:"message"`
}

type Result struct {
	Partition int32       `json:"partition"`
	Offset    int64       `json:"offset"`
	Error     *ErrorReply `json:"error,omitempty"`
}

type Request struct {
	ID                int                        `json:"id"`
	Op                string                     `json:"op"`
	Topic             string                     `json:"topic"`
	Records           []Record                   `json:"records"`
	Acks              string                     `json:"acks"`
	Codec             string                     `json:"codec"`
	Idempotence       bool                       `json:"idempotence"`
	MaxRequestBytes   int                        `json:"max_request_bytes"`
	Starts            map[string]json.RawMessage `json:"starts"`
	Count             int                        `json:"count"`
	TimeoutMs         int                        `json:"timeout_ms"`
	MaxPartitionBytes int                        `json:"max_partition_bytes"`
	Reset             string                     `json:"reset"`
	Member            string                     `json:"member"`
	Group             string                     `json:"group"`
	Topics            []string                   `json:"topics"`
	InstanceID        string                     `json:"instance_id"`
	Assignor          string                     `json:"assignor"`
	Protocol          string                     `json:"protocol"`
	AutoCommit        bool                       `json:"auto_commit"`
	SessionTimeoutMs  int                        `json:"session_timeout_ms"`
	RequestTimeoutMs  int                        `json:"request_timeout_ms"`
	Offsets           json.RawMessage            `json:"offsets"`
	Metadata          string                     `json:"metadata"`
	Partitions        json.RawMessage            `json:"partitions"`
	ReplicationFactor int                        `json:"replication_factor"`
	Configs           map[string]string          `json:"configs"`
	Total             int                        `json:"total"`
	Kind              string                     `json:"kind"`
	Name              string                     `json:"name"`
	At                map[string]json.RawMessage `json:"at"`
	Producer          string                     `json:"producer"`
	TransactionalID   string                     `json:"transactional_id"`
	Source            string                     `json:"source"`
	Target            string                     `json:"target"`
	Isolation         string                     `json:"isolation"`
	Last              []byte                     `json:"last"`
}

type Operation func(*Request) (any, error)

// moreOperations are those of a client's further files, which add them as the program starts.
var moreOperations = map[string]Operation{}

// OperationError is an error to report: Kafka's number or name of it, and a message.
type OperationError struct {
	Code    any
	Message string
}

func (e *OperationError) Error() string { return e.Message }

type object = map[string]any

var output sync.Mutex

func send(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

func codecOr(request *Request) string {
	if request.Codec == "" {
		return "none"
	}
	return request.Codec
}

func numberOr(number, otherwise int) int {
	if number == 0 {
		return otherwise
	}
	return number
}

func partitionOf(text string) int32 {
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		panic(err)
	}
	return int32(number)
}

// partitionsOf reads the whole number that create_topic carries, 1 if missing.
func (r *Request) partitionCount() int {
	count := 1
	if len(r.Partitions) > 0 {
		json.Unmarshal(r.Partitions, &count)
	}
	return count
}

func (r *Request) partitionList() []int32 {
	var list []int32
	json.Unmarshal(r.Partitions, &list)
	return list
}

func (r *Request) offsetsByTopic() map[string]map[int32]int64 {
	texts := map[string]map[string]int64{}
	if err := json.Unmarshal(r.Offsets, &texts); err != nil {
		panic(err)
	}
	found := map[string]map[int32]int64{}
	for topic, partitions := range texts {
		found[topic] = map[int32]int64{}
		for partition, offset := range partitions {
			found[topic][partitionOf(partition)] = offset
		}
	}
	return found
}

func (r *Request) offsetsByPartition() map[int32]int64 {
	texts := map[string]int64{}
	if err := json.Unmarshal(r.Offsets, &texts); err != nil {
		panic(err)
	}
	found := map[int32]int64{}
	for partition, offset := range texts {
		found[partitionOf(partition)] = offset
	}
	return found
}

// Start is where to begin: "earliest", an offset, or a timestamp.
type Start struct {
	Earliest  bool
	Offset    int64
	Timestamp *int64
}

func startOf(raw json.RawMessage) Start {
	var byTime struct{ Timestamp *int64 }
	if json.Unmarshal(raw, &byTime) == nil && byTime.Timestamp != nil {
		return Start{Timestamp: byTime.Timestamp}
	}
	var offset int64
	if json.Unmarshal(raw, &offset) == nil {
		return Start{Offset: offset}
	}
	return Start{Earliest: true}
}

// When is "earliest", "latest", "max_timestamp", or a time in milliseconds.
func whenOf(raw json.RawMessage) (string, int64) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return name, 0
	}
	var timestamp int64
	json.Unmarshal(raw, &timestamp)
	return "timestamp", timestamp
}

// MemberEvents sends a member's events and keeps its whole assignment.
type MemberEvents struct {
	name       string
	lock       sync.Mutex
	assignment map[string]map[int32]bool
}

func newMemberEvents(name string) *MemberEvents {
	return &MemberEvents{name: name, assignment: map[string]map[int32]bool{}}
}

func pairs(partitions map[string][]int32) [][]any {
	list := [][]any{}
	for topic, indexes := range partitions {
		for _, index := range indexes {
			list = append(list, []any{topic, index})
		}
	}
	sort.Slice(list, func(i, j int) bool { return fmt.Sprint(list[i]) < fmt.Sprint(list[j]) })
	return list
}

func (m *MemberEvents) change(kind string, partitions map[string][]int32, has bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for topic, indexes := range partitions {
		if m.assignment[topic] == nil {
			m.assignment[topic] = map[int32]bool{}
		}
		for _, index := range indexes {
			if has {
				m.assignment[topic][index] = true
			} else {
				delete(m.assignment[topic], index)
			}
		}
	}
	all := map[string][]int32{}
	for topic, indexes := range m.assignment {
		for index := range indexes {
			all[topic] = append(all[topic], index)
		}
	}
	send(object{"event": kind, "member": m.name, "partitions": pairs(partitions), "assignment": pairs(all)})
}

func (m *MemberEvents) assigned(partitions map[string][]int32) {
	m.change("assigned", partitions, true)
}
func (m *MemberEvents) revoked(partitions map[string][]int32) { m.change("revoked", partitions, false) }

func (m *MemberEvents) records(records []Record) {
	if len(records) > 0 {
		send(object{"event": "records", "member": m.name, "records": records})
	}
}

func (m *MemberEvents) failed(reply *ErrorReply) {
	send(object{"event": "failed", "member": m.name, "code": reply.Code, "message": reply.Message})
}

// serve answers requests until stdin ends; errorOf turns a client's error into Kafka's number or name.
func serve(operations map[string]Operation, errorOf func(error) *ErrorReply) {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		request := &Request{}
		if err := json.Unmarshal(line, request); err != nil {
			panic(err)
		}
		send(answer(operations, request, errorOf))
	}
}

func answer(operations map[string]Operation, request *Request, errorOf func(error) *ErrorReply) (reply object) {
	defer func() {
		if problem := recover(); problem != nil {
			os.Stderr.Write(debug.Stack())
			reply = object{"id": request.ID, "error": &ErrorReply{Code: "CLIENT", Message: fmt.Sprint(problem)}}
		}
	}()
	operation, found := operations[request.Op]
	if !found {
		operation, found = moreOperations[request.Op]
	}
	if !found {
		return object{"id": request.ID, "error": &ErrorReply{Code: "NO_SUCH_OPERATION", Message: request.Op}}
	}
	result, err := operation(request)
	if err != nil {
		return object{"id": request.ID, "error": replyOf(err, errorOf)}
	}
	if result == nil {
		result = object{}
	}
	return object{"id": request.ID, "ok": result}
}

func replyOf(err error, errorOf func(error) *ErrorReply) *ErrorReply {
	var own *OperationError
	if errors.As(err, &own) {
		return &ErrorReply{Code: own.Code, Message: own.Message}
	}
	return errorOf(err)
}

func timeoutError(got, wanted int) error {
	return &OperationError{Code: "TIMEOUT", Message: fmt.Sprintf("%d of %d records", got, wanted)}
}

func textOf(value string) *string { return &value }

func splitAddress(address string) (string, int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	port, _ := strconv.Atoi(text)
	return host, port
}
