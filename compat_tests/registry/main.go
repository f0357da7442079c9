// franz-go's sr; see test_schema_registry.py.
package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/sr"
)

type order struct {
	ID int `json:"id"`
}

const (
	avroText  = `{"type":"record","name":"Order","namespace":"g","fields":[{"name":"id","type":"int"}]}`
	jsonText  = `{"title":"Order","type":"object","properties":{"id":{"type":"integer"}}}`
	protoText = `syntax = "proto3"; message Order { int32 id = 1; }`
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func must(fits bool, what string) {
	if !fits {
		check(errors.New(what))
	}
}

// An int of Avro is a zigzag varint, as encoding/binary's signed ones are.
func encodeAvro(v any) ([]byte, error) { return binary.AppendVarint(nil, int64(v.(order).ID)), nil }

func decodeAvro(data []byte, v any) error {
	id, n := binary.Varint(data)
	must(n == len(data), "bytes are left over")
	v.(*order).ID = int(id)
	return nil
}

func encodeProto(v any) ([]byte, error) {
	return binary.AppendUvarint([]byte{8}, uint64(v.(order).ID)), nil
}

func decodeProto(data []byte, v any) error {
	must(data[0] == 8, "another field")
	id, _ := binary.Uvarint(data[1:])
	v.(*order).ID = int(id)
	return nil
}

func main() {
	ctx := context.Background()
	client, err := sr.NewClient(sr.URLs(os.Args[1]))
	check(err)
	schemas := map[string]sr.Schema{
		"avro":     {Schema: avroText},
		"json":     {Schema: jsonText, Type: sr.TypeJSON},
		"protobuf": {Schema: protoText, Type: sr.TypeProtobuf},
	}
	options := map[string][]sr.EncodingOpt{
		"avro":     {sr.EncodeFn(encodeAvro), sr.DecodeFn(decodeAvro)},
		"json":     {sr.EncodeFn(json.Marshal), sr.DecodeFn(json.Unmarshal)},
		"protobuf": {sr.EncodeFn(encodeProto), sr.DecodeFn(decodeProto), sr.Index(0)},
	}
	written := map[string]string{}
	for kind, schema := range schemas {
		subject := "go-" + kind + "-value"
		made, err := client.CreateSchema(ctx, subject, schema)
		check(err)
		found, err := client.LookupSchema(ctx, subject, schema)
		check(err)
		must(found.ID == made.ID && found.Version == 1, kind+": looked up as another one")
		byID, err := client.SchemaByID(ctx, made.ID)
		check(err)
		must(byID.Type == schema.Type, kind+": another type")
		var serde sr.Serde
		serde.Register(made.ID, order{}, options[kind]...)
		data, err := serde.Encode(order{ID: 7})
		check(err)
		written[kind] = hex.EncodeToString(data)
	}

	_, err = client.CreateSchema(ctx, "go-inner", sr.Schema{Schema: `{"type":"record","name":"Inner","fields":[]}`})
	check(err)
	outer, err := client.CreateSchema(ctx, "go-outer", sr.Schema{
		Schema:     `{"type":"array","items":"Inner"}`,
		References: []sr.SchemaReference{{Name: "Inner", Subject: "go-inner", Version: 1}},
	})
	check(err)
	users, err := client.SchemaReferences(ctx, "go-inner", 1)
	check(err)
	must(len(users) == 1 && users[0].ID == outer.ID, "the reference is not told")

	wider := sr.Schema{Schema: `{"type":"record","name":"Order","namespace":"g","fields":[{"name":"id","type":"string"}]}`}
	result, err := client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "go-avro-value", -1, wider)
	check(err)
	must(!result.Is && len(result.Messages) > 0, "a schema that breaks readers is compatible")
	_, err = client.CreateSchema(ctx, "go-avro-value", wider)
	var refusal *sr.ResponseError
	must(errors.As(err, &refusal), "no refusal")

	for _, set := range client.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFull}, "go-avro-value") {
		check(set.Err)
	}
	for _, got := range client.Compatibility(ctx, "go-avro-value") {
		check(got.Err)
		must(got.Level == sr.CompatFull, "another compatibility")
	}
	for _, got := range client.Mode(ctx) {
		check(got.Err)
	}
	_, err = client.DeleteSubject(ctx, "go-outer", sr.SoftDelete)
	check(err)
	_, err = client.DeleteSubject(ctx, "go-outer", sr.HardDelete)
	check(err)
	subjects, err := client.Subjects(ctx)
	check(err)
	for _, subject := range subjects {
		must(subject != "go-outer", "a deleted subject is told")
	}
	_, err = client.AllSchemas(ctx)
	check(err)

	var given map[string]string
	check(json.Unmarshal([]byte(os.Args[2]), &given))
	read := map[string]order{}
	for kind, text := range given {
		data, err := hex.DecodeString(text)
		check(err)
		id, _, err := new(sr.ConfluentHeader).DecodeID(data)
		check(err)
		_, err = client.SchemaByID(ctx, id)
		check(err)
		var serde sr.Serde
		serde.Register(id, order{}, options[kind]...)
		var value order
		check(serde.Decode(data, &value))
		read[kind] = value
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"written": written, "read": read, "refused": refusal.ErrorCode,
	}))
}
