package main

import (
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// access is how clients and writers come in.
func access() *kafka.Transport {
	return &kafka.Transport{TLS: tlsConfig(), SASL: login()}
}

// dialer is how readers and members do.
func dialer(id string) *kafka.Dialer {
	return &kafka.Dialer{ClientID: id, Timeout: 10 * time.Second, TLS: tlsConfig(), SASLMechanism: login()}
}

func login() sasl.Mechanism {
	algorithm := scram.SHA512
	switch security.Mechanism {
	case "":
		return nil
	case "PLAIN":
		return plain.Mechanism{Username: security.User, Password: security.Password}
	case "SCRAM-SHA-256":
		algorithm = scram.SHA256
	}
	mechanism, err := scram.Mechanism(algorithm, security.User, security.Password)
	if err != nil {
		panic(err)
	}
	return mechanism
}
