package main

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// comeIn has a configuration say how to come in where that takes TLS and a login.
func comeIn(config *sarama.Config) {
	if tls := tlsConfig(); tls != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, tls
	}
	if security.Mechanism == "" {
		return
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.User, config.Net.SASL.Password = security.User, security.Password
	config.Net.SASL.Mechanism = sarama.SASLMechanism(security.Mechanism)
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		return &scramClient{hash: map[string]scram.HashGeneratorFcn{
			"SCRAM-SHA-256": scram.SHA256, "SCRAM-SHA-512": scram.SHA512,
		}[security.Mechanism]}
	}
}

// scramClient is what sarama leaves to its users, by the library that its own examples take.
type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err == nil {
		c.conversation = client.NewConversation()
	}
	return err
}

func (c *scramClient) Step(challenge string) (string, error) { return c.conversation.Step(challenge) }

func (c *scramClient) Done() bool { return c.conversation.Done() }
