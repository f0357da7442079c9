package main

import (
	"context"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// How each client comes in.
var (
	encryption = kgo.DialTLSConfig(tlsConfig())
	login      = kgo.SASL(loginOf()...)
	// Without a logger it tells nobody why it cannot connect, and tries again and again.
	logger = kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil))
)

func loginOf() []sasl.Mechanism {
	auth := scram.Auth{User: security.User, Pass: security.Password}
	switch security.Mechanism {
	case "PLAIN":
		return []sasl.Mechanism{plain.Auth{User: security.User, Pass: security.Password}.AsMechanism()}
	case "SCRAM-SHA-256":
		return []sasl.Mechanism{auth.AsSha256Mechanism()}
	case "SCRAM-SHA-512":
		return []sasl.Mechanism{auth.AsSha512Mechanism()}
	case "OAUTHBEARER":
		return []sasl.Mechanism{oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			return oauth.Auth{Token: security.Token}, nil
		})}
	}
	return nil
}
